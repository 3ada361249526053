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
  constexpr std::string_view names[] = {"exclusive", "shared", "permits", "election", "partitions"};
  return names[static_cast<std::size_t>(use)];
}

Mode mode_of_worker(const Plan& plan, unsigned number) {
  switch (plan.use) {
    case Use::exclusive:
    case Use::election:
    case Use::partitions:
      return Mode::exclusive();
    case Use::shared:
      return number < plan.workers - readers_of(plan) ? Mode::exclusive() : Mode::shared();
    case Use::permits:
      return Mode::permit_of(permits_of(plan));
  }
  return Mode::exclusive();
}

unsigned readers_of(const Plan& plan) {
  return plan.use == Use::shared ? plan.workers / 2 : 0;
}

unsigned permits_of(const Plan& plan) {
  return plan.use == Use::permits ? plan.workers - 1 : 0;
}

unsigned partitions_of(const Plan& plan) {
  return plan.use == Use::partitions ? plan.workers * 2 : 0;
}

std::string resource_name(Use use, const std::string& lock, Piece piece) {
  if (!piece) return lock;
  return lock + (use == Use::partitions ? "/" : "#") + std::to_string(*piece);
}

std::string resource_name(const std::string& lock, std::optional<Slot> slot) {
  return resource_name(Use::permits, lock, slot ? Piece(slot->number) : std::nullopt);
}

std::vector<std::string> resource_names(const Plan& plan, const std::string& lock) {
  const unsigned pieces = permits_of(plan) + partitions_of(plan);
  if (pieces == 0) return {lock};
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < pieces; ++i) names.push_back(resource_name(plan.use, lock, i));
  return names;
}

}  // namespace leasehold::drill
