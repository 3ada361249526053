// Which URL schemes are known. The only global state of the library.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/diagnosis.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/once_admin.h"
#include "leasehold/outbox.h"
#include "leasehold/store.h"
#include "leasehold/url.h"

namespace leasehold {

struct OpenOptions {
  IfMissing if_missing = IfMissing::create;
  Millis store_timeout = std::chrono::seconds(5);  // how long the store may take to answer
  std::stop_token stop{};                          // ends it early with `cancelled`

  CallContext begin() const { return {BootClock::now() + store_timeout, stop}; }
};

struct Adapter {
  std::string scheme;
  // Each may be empty: a resource that keeps no locks, a store without a fence.
  std::function<Result<std::unique_ptr<Store>>(const Url&, const OpenOptions&)> open_store;
  std::function<Result<std::unique_ptr<FenceAdmin>>(const Url&)> open_fence;
  std::function<Result<std::unique_ptr<Outbox>>(const Url&)> open_outbox = {};
  std::function<Result<std::unique_ptr<OutboxTarget>>(const Url&)> open_target = {};
  std::function<Result<std::unique_ptr<OnceAdmin>>(const Url&)> open_once = {};
  // Creates what serial queues need there; doing it again changes nothing.
  std::function<Status(const Url&)> install_serial_queue = {};
  // What is wrong with the live server or file. `unavailable` if it cannot be reached at all.
  std::function<Result<Diagnosis>(const Url&, const ExamineOptions&)> examine = {};
};

// A store whose code is loaded when a URL names it for the first time.
struct LateAdapter {
  std::string scheme;
  std::function<Result<Adapter>()> load;  // called for each URL, from any thread
};

// Thread safe.
class Registry {
 public:
  Registry();
  ~Registry();

  // The process-wide registry that connect() uses unless told otherwise.
  static Registry& standard();

  // Adds the adapters of one technology, one per scheme; a scheme that is there already is
  // replaced.
  void add(std::vector<Adapter> adapters);
  void add_late(std::vector<LateAdapter> adapters);

  // Schemes that Leasehold knows and this build does not have, so that an error can say so.
  void leave_out(std::vector<std::string> schemes);

  // Whether URLs of this scheme name a store.
  bool has_store(const std::string& scheme) const;

  // Open what the URL names, after its secrets were read from where it says (Url::read_secrets).
  // Fail with `invalid` (URL), `unsupported` (scheme, naming those that are known; no store, fence,
  // outbox, target, keys or queues there), or as the adapter does.
  [[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view url,
                                                          const OpenOptions& options) const;
  [[nodiscard]] Result<std::unique_ptr<FenceAdmin>> open_fence(std::string_view url) const;
  [[nodiscard]] Result<std::unique_ptr<Outbox>> open_outbox(std::string_view url) const;
  [[nodiscard]] Result<std::unique_ptr<OutboxTarget>> open_target(std::string_view url) const;
  [[nodiscard]] Result<std::unique_ptr<OnceAdmin>> open_once(std::string_view url) const;
  [[nodiscard]] Status install_serial_queue(std::string_view url) const;
  [[nodiscard]] Result<Diagnosis> examine(std::string_view url,
                                          const ExamineOptions& options) const;

 private:
  struct Entry;
  [[nodiscard]] Result<Entry> entry_of(const std::string& scheme) const;
  struct Found;
  [[nodiscard]] Result<Found> find(std::string_view url) const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leasehold
