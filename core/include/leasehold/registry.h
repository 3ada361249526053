// Which URL schemes are known. The only global state of the library.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/examination.h"
#include "leasehold/store.h"
#include "leasehold/technology.h"
#include "leasehold/url.h"

namespace leasehold {

struct OpenOptions {
  IfMissing if_missing = IfMissing::create;
  Millis store_timeout = std::chrono::seconds(5);  // how long the store may take to answer
  std::stop_token stop{};                          // ends it early with `cancelled`

  CallContext begin() const { return {BootClock::now() + store_timeout, stop}; }
};

// What a URL may open besides a store: the administration of a fence or of a pattern. Core does not
// know these interfaces; each names itself by a constant, as in `kOffer = "outbox"`.
class Offers {
 public:
  template <class Thing>
  using Open = std::function<Result<std::unique_ptr<Thing>>(const Url&)>;

  template <class Thing>
  Offers&& with(Open<Thing> open) && {
    openers_.insert_or_assign(std::string(Thing::kOffer),
                              std::make_shared<const Open<Thing>>(std::move(open)));
    return std::move(*this);
  }

  // `unsupported` if it is not offered; else as the adapter does.
  template <class Thing>
  [[nodiscard]] Result<std::unique_ptr<Thing>> open(const Url& url) const {
    const auto found = openers_.find(Thing::kOffer);
    if (found == openers_.end()) return fail(not_offered(url, Thing::kOffer));
    return (*static_cast<const Open<Thing>*>(found->second.get()))(url);
  }
  bool has(std::string_view what) const { return openers_.contains(what); }
  std::vector<std::string> names() const;
  static Error not_offered(const Url& url, std::string_view what);

 private:
  std::map<std::string, std::shared_ptr<const void>, std::less<>> openers_;  // by kOffer
};

struct Adapter {
  std::string scheme;
  // Empty: a resource that keeps no locks.
  std::function<Result<std::unique_ptr<Store>>(const Url&, const OpenOptions&)> open_store;
  Offers offers = {};
  // What is wrong with the live server or file. `unavailable` if it cannot be reached at all.
  std::function<Result<Diagnosis>(const Url&, const ExamineOptions&)> examine = {};
};

// Gives the adapters of one technology, one per scheme.
using LoadAdapters = std::function<Result<std::vector<Adapter>>()>;

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
  // The same for one whose code may come later: `load` is called for each URL, from any thread.
  void add(Technology technology, LoadAdapters load);

  // Leasehold knows it, and this build does not have it, so that an error can say so.
  void leave_out(Technology technology);

  // What was added with a description, and what was left out; in that order.
  std::vector<Technology> technologies() const;
  std::vector<Technology> left_out() const;
  // The one that was added with this scheme.
  std::optional<Technology> technology_of(std::string_view scheme) const;

  // Whether URLs of this scheme name a store.
  bool has_store(const std::string& scheme) const;

  // Open what the URL names, after its secrets were read from where it says (Url::read_secrets).
  // Fail with `invalid` (URL), `unsupported` (scheme, naming those that are known; no store or no
  // Thing there), or as the adapter does.
  [[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view url,
                                                          const OpenOptions& options) const;
  template <class Thing>
  [[nodiscard]] Result<std::unique_ptr<Thing>> open(std::string_view url) const {
    const auto found = find(url);
    if (!found) return fail(found.error());
    return found->adapter.offers.template open<Thing>(found->url);
  }
  [[nodiscard]] Result<Diagnosis> examine(std::string_view url,
                                          const ExamineOptions& options) const;

 private:
  struct Entry;
  [[nodiscard]] Result<Entry> entry_of(const std::string& scheme) const;
  struct Found {
    Adapter adapter;
    Url url;
  };
  [[nodiscard]] Result<Found> find(std::string_view url) const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leasehold
