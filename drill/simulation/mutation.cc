#include "mutation.h"

namespace leasehold::simulation {

std::string_view to_string(Mutation mutation) {
  constexpr std::string_view names[] = {
      "none",
      "bare_delete",
      "compare_then_delete",
      "random_token",
      "counter_lost_on_release",
      "counter_lost_in_crash",
      "unsynced_ceiling",
      "leases_lost_in_crash",
      "token_of_32_bits",
      "wall_clock_expiry",
      "renew_acquires",
      "renew_of_any_holder",
      "alive_at_expiry",
      "acquire_renews",
      "retry_granted_anew",
      "old_grant_told_as_fresh",
      "dead_waiter_blocks",
      "reader_beside_writer",
      "one_permit_too_many",
      "slot_given_twice",
      "overtaking",
      "write_only_fence",
      "fence_refuses_equal",
      "fence_accepts_equal",
      "fence_accepts_lower",
      "fence_ignores_lineage",
      "fence_without_sequence",
      "fence_forgets_mark",
      "float_compare",
      "fence_lets_any_reader_in",
      "fence_forgets_readers",
      "floor_not_heeded",
      "neighbours_swap_answers",
      "deadline_from_reply",
      "no_drift_allowance",
      "new_id_after_lost_reply",
      "release_overtakes_acquire",
      "release_not_sent",
      "lost_lease_comes_back",
      "lost_lease_hurries",
      "renews_what_was_stopped",
      "confirms_for_too_long",
      "answers_twice",
      "answers_never",
  };
  static_assert(std::size(names) == static_cast<std::size_t>(Mutation::answers_never) + 1);
  return names[static_cast<std::size_t>(mutation)];
}

const std::vector<Mutation>& all_mutations() {
  static const std::vector<Mutation> all = [] {
    std::vector<Mutation> list;
    for (int i = 1; i <= static_cast<int>(Mutation::answers_never); ++i) {
      list.push_back(static_cast<Mutation>(i));
    }
    return list;
  }();
  return all;
}

}  // namespace leasehold::simulation
