// Resources behind a fence: check and write are one step, entering comes before reading, and a
// sequence number orders one holder's writes. A lock guards one, or one for each of its permits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "chance.h"
#include "fence/rule.h"
#include "mutation.h"
#include "recorder.h"
#include "settings.h"
#include "store_model.h"

namespace leasehold::simulation {

// Which resource: NAME, or NAME#slot of a permit.
struct ResourceRef {
  std::uint32_t lock = 0;
  std::optional<Slot> slot = {};
};

// One read or write, as it travels.
struct Visit {
  bool writes = false;
  ResourceRef where = {};
  Mode mode = {};  // in which the lock is held: who shares it enters to read
  std::int64_t token = 0;
  RequestRef request = 0;
  drill::StoreRef store = 0;
  std::uint32_t sequence = 0;
  std::uint64_t value = 0;
  std::uint64_t base = 0;
};
struct VisitAnswer {
  bool accepted = false;
  std::uint64_t value = 0;
};

class ResourceModel {
 public:
  ResourceModel(Recorder& recorder, Chance& chance, const Settings& settings, Mutation mutation);

  VisitAnswer visit(Time now, const Visit& visit);

  // Forgets the marks of all where nobody has entered since `before`. False: there are none.
  bool sweep(Time now, Time before);

  // The mark of a resource, for a forger; 0: nothing has entered.
  std::int64_t mark(const ResourceRef& where) const {
    return places_[index(where)].mark.threshold();
  }

 private:
  static constexpr std::size_t kMostSlots = 8;

  struct Place {
    ResourceRef where;
    LockName lock;
    fence::Mark mark = {};
    Time entered = 0;
    std::uint64_t value = 0;
  };

  static std::size_t index(const ResourceRef& where) {
    const std::int64_t slot = where.slot ? where.slot->number : 0;
    return where.lock * kMostSlots + static_cast<std::size_t>(slot);
  }
  static bool has_mark(const Place& place) { return place.mark.holder || place.mark.reader; }
  fence::Mark mark_of(const Place& place, const StoreId& store) const;
  fence::Attempt attempt_of(const Place& place, const Visit& visit) const;
  fence::Verdict judge(const fence::Mark& mark, const fence::Attempt& attempt) const;
  drill::Record record(Time now, const Place& place) const;

  Recorder& recorder_;
  Chance& chance_;
  const Mutation mutation_;
  const drill::ProcessRef process_;
  std::vector<LockRef> lock_refs_;
  std::vector<Place> places_;
  std::map<StoreId, std::int64_t> floors_;
};

}  // namespace leasehold::simulation
