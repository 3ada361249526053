#include "leasehold/registry.h"

#include <algorithm>
#include <map>

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
  std::vector<Technology> technologies LEASEHOLD_GUARDED_BY(mutex);
  std::vector<Technology> left_out LEASEHOLD_GUARDED_BY(mutex);
};

namespace {

void put(Technology technology, std::vector<Technology>& list) {
  const auto there = std::find_if(list.begin(), list.end(),
                                  [&](const Technology& it) { return it.name == technology.name; });
  if (there == list.end()) {
    list.push_back(std::move(technology));
  } else {
    *there = std::move(technology);
  }
}

bool is_as_described(const Adapter& adapter, const Scheme& scheme) {
  std::vector<std::string> offered = adapter.offers.names();
  if (adapter.open_store) offered.emplace_back(kStoreUse);
  return offered.size() == scheme.uses.size() &&
         std::all_of(offered.begin(), offered.end(),
                     [&](const std::string& it) { return scheme.use(it) != nullptr; });
}

Result<Adapter> adapter_of(const Scheme& scheme, const LoadAdapters& load) {
  auto adapters = TRY(load());
  const auto found = std::find_if(adapters.begin(), adapters.end(),
                                  [&](const Adapter& it) { return it.scheme == scheme.name; });
  if (found != adapters.end() && is_as_described(*found, scheme)) return std::move(*found);
  return fail(ErrorCode::internal,
              "the adapter of '" + scheme.name + "' is not as it is described");
}

}  // namespace

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

void Registry::add(Technology technology, LoadAdapters load) {
  MutexLock lock(state_->mutex);
  for (const Scheme& scheme : technology.schemes) {
    state_->entries.insert_or_assign(scheme.name,
                                     Entry{[scheme, load] { return adapter_of(scheme, load); },
                                           scheme.use(kStoreUse) != nullptr});
  }
  put(std::move(technology), state_->technologies);
}

void Registry::leave_out(Technology technology) {
  MutexLock lock(state_->mutex);
  put(std::move(technology), state_->left_out);
}

std::vector<Technology> Registry::technologies() const {
  MutexLock lock(state_->mutex);
  return state_->technologies;
}

std::vector<Technology> Registry::left_out() const {
  MutexLock lock(state_->mutex);
  return state_->left_out;
}

std::optional<Technology> Registry::technology_of(std::string_view scheme) const {
  MutexLock lock(state_->mutex);
  for (const Technology& it : state_->technologies) {
    if (it.scheme(scheme) != nullptr) return it;
  }
  return std::nullopt;
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
  const bool left_out =
      std::any_of(state_->left_out.begin(), state_->left_out.end(),
                  [&](const Technology& it) { return it.scheme(scheme) != nullptr; });
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

std::vector<std::string> Offers::names() const {
  std::vector<std::string> all;
  for (const auto& [name, open] : openers_) all.push_back(name);
  return all;
}

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
