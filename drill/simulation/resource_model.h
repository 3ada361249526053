// A resource behind a fence: check and write are one step, entering comes before reading, and a
// sequence number orders one holder's writes.
#pragma once

#include <cstdint>
#include <vector>

#include "chance.h"
#include "fence/rule.h"
#include "mutation.h"
#include "recorder.h"
#include "settings.h"
#include "store_model.h"

namespace leasehold::simulation {

// One read or write, as it travels.
struct Access {
  bool writes = false;
  std::uint32_t lock = 0;
  std::int64_t token = 0;
  RequestRef request = 0;
  drill::StoreRef store = 0;
  std::uint32_t sequence = 0;
  std::uint64_t value = 0;
  std::uint64_t base = 0;
};
struct AccessAnswer {
  bool accepted = false;
  std::uint64_t value = 0;
};

class ResourceModel {
 public:
  ResourceModel(Recorder& recorder, Chance& chance, const Settings& settings, Mutation mutation);

  AccessAnswer access(Time now, const Access& access);

  // The mark of a resource, for a forger; 0: nothing has entered.
  std::int64_t mark(std::uint32_t lock) const { return places_[lock].mark.threshold(); }

 private:
  struct Place {
    LockName name;
    fence::Mark mark = {};
    std::uint64_t value = 0;
  };

  fence::Attempt attempt_of(const Place& place, const Access& access) const;
  fence::Verdict judge(const Place& place, const fence::Attempt& attempt) const;

  Recorder& recorder_;
  Chance& chance_;
  const Mutation mutation_;
  const drill::ProcessRef process_;
  std::vector<LockRef> lock_refs_;
  std::vector<Place> places_;
};

}  // namespace leasehold::simulation
