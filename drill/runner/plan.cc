#include "plan.h"

#include <algorithm>
#include <array>

namespace leasehold::drill {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"pause",          "kill-holder", "kill-server",
                                                    "restart-server", "cut",         "delay",
                                                    "lose-reply",     "clock",       "failover"};

}  // namespace

std::string_view to_string(Fault fault) {
  return kNames[static_cast<std::size_t>(fault)];
}

bool is_of_holder(Fault fault) {
  return fault == Fault::pause || fault == Fault::kill_holder;
}

std::optional<Fault> parse_fault(std::string_view name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Fault>(found - kNames.begin());
}

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> faults;
    for (std::size_t i = 0; i < kNames.size(); ++i) faults.push_back(static_cast<Fault>(i));
    return faults;
  }();
  return all;
}

std::string_view to_string(Use use) {
  constexpr std::string_view names[] = {"exclusive", "shared", "permits"};
  return names[static_cast<std::size_t>(use)];
}

Mode mode_of_worker(const Plan& plan, unsigned number) {
  switch (plan.use) {
    case Use::exclusive:
      return Mode::exclusive();
    case Use::shared:
      return number < plan.workers - readers_of(plan) ? Mode::exclusive() : Mode::shared();
    case Use::permits:
      return Mode::permit_of(slots_of(plan));
  }
  return Mode::exclusive();
}

unsigned readers_of(const Plan& plan) {
  return plan.use == Use::shared ? plan.workers / 2 : 0;
}

unsigned slots_of(const Plan& plan) {
  return plan.use == Use::permits ? plan.workers - 1 : 1;
}

std::string resource_name(const std::string& lock, std::optional<Slot> slot) {
  return slot ? lock + "#" + std::to_string(slot->number) : lock;
}

}  // namespace leasehold::drill
