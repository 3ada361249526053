#include "leasehold/registry.h"

#include <map>
#include <set>

#include "kit/threads/thread_safety.h"
#include "kit/try.h"

namespace leasehold {

struct Registry::Entry {
  std::function<Result<Adapter>()> load;
  bool has_store;
};

struct Registry::State {
  mutable Mutex mutex;
  std::map<std::string, Entry> entries LEASEHOLD_GUARDED_BY(mutex);
  std::set<std::string> left_out LEASEHOLD_GUARDED_BY(mutex);
};

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Registry& Registry::standard() {
  static Registry registry;
  return registry;
}

void Registry::add(std::vector<Adapter> adapters) {
  MutexLock lock(state_->mutex);
  for (Adapter& adapter : adapters) {
    std::string scheme = adapter.scheme;
    const bool has_store = adapter.open_store != nullptr;
    state_->entries.insert_or_assign(
        std::move(scheme), Entry{[adapter = std::move(adapter)] { return adapter; }, has_store});
  }
}

void Registry::add_late(std::vector<LateAdapter> adapters) {
  MutexLock lock(state_->mutex);
  for (LateAdapter& adapter : adapters) {
    state_->entries.insert_or_assign(std::move(adapter.scheme),
                                     Entry{std::move(adapter.load), /*has_store=*/true});
  }
}

void Registry::leave_out(std::vector<std::string> schemes) {
  MutexLock lock(state_->mutex);
  for (std::string& scheme : schemes) state_->left_out.insert(std::move(scheme));
}

bool Registry::has_store(const std::string& scheme) const {
  MutexLock lock(state_->mutex);
  const auto found = state_->entries.find(scheme);
  return found != state_->entries.end() && found->second.has_store;
}

namespace {

// "localhost:6379" reads as a scheme and a path.
bool is_host_and_port(const Url& url) {
  return url.hosts.empty() && !url.path.empty() &&
         url.path.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Result<Registry::Found> Registry::find(std::string_view text) const {
  auto url = TRY(Url::parse(text));
  const auto entry = entry_of(url.scheme);
  if (!entry && is_host_and_port(url)) {
    return fail(ErrorCode::invalid, "store URL must begin with the kind of store, as in redis://" +
                                        url.scheme + ":" + url.path);
  }
  if (!entry) return fail(entry.error());
  TRY(url.read_secrets());
  auto adapter = TRY(entry->load());
  return Found{std::move(adapter), std::move(url)};
}

Result<Registry::Entry> Registry::entry_of(const std::string& scheme) const {
  MutexLock lock(state_->mutex);
  const auto found = state_->entries.find(scheme);
  if (found != state_->entries.end()) return found->second;
  std::string stores;
  std::string others;
  for (const auto& [name, entry] : state_->entries) {
    std::string& list = entry.has_store ? stores : others;
    list += (list.empty() ? "" : ", ") + name;
  }
  const bool left_out = state_->left_out.contains(scheme);
  return fail(ErrorCode::unsupported,
              (left_out ? "this build of Leasehold was made without the adapter of '"
                        : "no store is registered for the scheme '") +
                  scheme + "'; there are: " +
                  (stores.empty() ? "none (was register_stores() called?)" : stores) +
                  (others.empty() ? "" : "; for fences alone: " + others));
}

namespace {

Error keeps_no_locks(const Url& url) {
  return Error(ErrorCode::unsupported,
               "'" + url.scheme + "' is fenced as a resource; it keeps no locks");
}

}  // namespace

Error Offers::not_offered(const Url& url, std::string_view what) {
  return Error(ErrorCode::unsupported,
               "there is no " + std::string(what) + " for '" + url.scheme + "'");
}

Result<std::unique_ptr<Store>> Registry::open_store(std::string_view url,
                                                    const OpenOptions& options) const {
  const auto found = TRY(find(url));
  if (!found.adapter.open_store) return fail(keeps_no_locks(found.url));
  auto store = found.adapter.open_store(found.url, options);
  const bool left = !store && options.stop.stop_requested();
  if (left && store.error().code == ErrorCode::unavailable) {
    store.error().code = ErrorCode::cancelled;
  }
  return store;
}

Result<Diagnosis> Registry::examine(std::string_view url, const ExamineOptions& options) const {
  const auto found = TRY(find(url));
  const Adapter& adapter = found.adapter;
  const bool as_store = options.as == ExaminedAs::store;
  if (as_store && !adapter.open_store) return fail(keeps_no_locks(found.url));
  if (!as_store && !adapter.offers.has(kFenceOffer)) {
    return fail(Offers::not_offered(found.url, kFenceOffer));
  }
  if (!adapter.examine) {
    return fail(ErrorCode::unsupported, "'" + found.url.scheme + "' cannot be examined");
  }
  return adapter.examine(found.url, options);
}

}  // namespace leasehold
