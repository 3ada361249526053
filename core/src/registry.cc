#include "leasehold/registry.h"

#include <map>
#include <set>

#include "leasehold/detail/thread_safety.h"

namespace leasehold {

struct Registry::State {
  mutable Mutex mutex;
  std::map<std::string, Adapter> adapters LEASEHOLD_GUARDED_BY(mutex);
  std::set<std::string> left_out LEASEHOLD_GUARDED_BY(mutex);
};

struct Registry::Found {
  Adapter adapter;
  Url url;
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
    state_->adapters.insert_or_assign(std::move(scheme), std::move(adapter));
  }
}

void Registry::leave_out(std::vector<std::string> schemes) {
  MutexLock lock(state_->mutex);
  for (std::string& scheme : schemes) state_->left_out.insert(std::move(scheme));
}

bool Registry::has_store(const std::string& scheme) const {
  MutexLock lock(state_->mutex);
  const auto found = state_->adapters.find(scheme);
  return found != state_->adapters.end() && found->second.open_store;
}

Result<Registry::Found> Registry::find(std::string_view text) const {
  auto url = Url::parse(text);
  if (!url) return fail(std::move(url.error()));
  MutexLock lock(state_->mutex);
  const auto found = state_->adapters.find(url->scheme);
  if (found != state_->adapters.end()) {
    if (auto ok = url->read_secrets(); !ok) return fail(std::move(ok.error()));
    return Found{found->second, std::move(*url)};
  }
  std::string stores;
  std::string others;
  for (const auto& [name, adapter] : state_->adapters) {
    std::string& list = adapter.open_store ? stores : others;
    list += (list.empty() ? "" : ", ") + name;
  }
  const bool left_out = state_->left_out.contains(url->scheme);
  return fail(ErrorCode::unsupported,
              (left_out ? "this build of Leasehold was made without the adapter of '"
                        : "no store is known for the scheme '") +
                  url->scheme + "'; there are: " +
                  (stores.empty() ? "none (was register_stores() called?)" : stores) +
                  (others.empty() ? "" : "; and without locks, only with a fence: " + others));
}

namespace {

Error keeps_no_locks(const Url& url) {
  return Error(ErrorCode::unsupported,
               "'" + url.scheme + "' is fenced as a resource; it keeps no locks");
}

Error has_no_fence(const Url& url) {
  return Error(ErrorCode::unsupported, "there is no fence for '" + url.scheme + "'");
}

}  // namespace

Result<std::unique_ptr<Store>> Registry::open_store(std::string_view url,
                                                    IfMissing if_missing) const {
  const auto found = find(url);
  if (!found) return fail(found.error());
  if (!found->adapter.open_store) return fail(keeps_no_locks(found->url));
  return found->adapter.open_store(found->url, if_missing);
}

Result<std::unique_ptr<FenceAdmin>> Registry::open_fence(std::string_view url) const {
  const auto found = find(url);
  if (!found) return fail(found.error());
  if (!found->adapter.open_fence) return fail(has_no_fence(found->url));
  return found->adapter.open_fence(found->url);
}

Result<std::unique_ptr<Outbox>> Registry::open_outbox(std::string_view url) const {
  const auto found = find(url);
  if (!found) return fail(found.error());
  if (!found->adapter.open_outbox) {
    return fail(ErrorCode::unsupported, "there is no outbox for '" + found->url.scheme + "'");
  }
  return found->adapter.open_outbox(found->url);
}

Result<std::unique_ptr<OutboxTarget>> Registry::open_target(std::string_view url) const {
  const auto found = find(url);
  if (!found) return fail(found.error());
  if (!found->adapter.open_target) {
    return fail(ErrorCode::unsupported, "messages cannot be sent to '" + found->url.scheme + "'");
  }
  return found->adapter.open_target(found->url);
}

Result<std::unique_ptr<OnceAdmin>> Registry::open_once(std::string_view url) const {
  const auto found = find(url);
  if (!found) return fail(found.error());
  if (!found->adapter.open_once) {
    return fail(ErrorCode::unsupported,
                "there are no idempotency keys to look after for '" + found->url.scheme + "'");
  }
  return found->adapter.open_once(found->url);
}

Status Registry::install_serial_queue(std::string_view url) const {
  const auto found = find(url);
  if (!found) return fail(found.error());
  if (!found->adapter.install_serial_queue) {
    return fail(ErrorCode::unsupported,
                "there is nothing to install for serial queues of '" + found->url.scheme + "'");
  }
  return found->adapter.install_serial_queue(found->url);
}

Result<Diagnosis> Registry::examine(std::string_view url, const ExamineOptions& options) const {
  const auto found = find(url);
  if (!found) return fail(found.error());
  const Adapter& adapter = found->adapter;
  const bool as_store = options.as == ExaminedAs::store;
  if (as_store && !adapter.open_store) return fail(keeps_no_locks(found->url));
  if (!as_store && !adapter.open_fence) return fail(has_no_fence(found->url));
  if (!adapter.examine) {
    return fail(ErrorCode::unsupported, "'" + found->url.scheme + "' cannot be examined");
  }
  return adapter.examine(found->url, options);
}

}  // namespace leasehold
