// Known bugs, put in on purpose: each must be caught.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace leasehold::simulation {

enum class Mutation : std::uint8_t {
  none,
  // the store
  bare_delete,              // release ends the grant of whoever holds
  compare_then_delete,      // release compares, and deletes a little later
  random_token,             // tokens are random numbers
  counter_lost_on_release,  // the counter goes with the lock
  counter_lost_in_crash,    // the counter is not on disk before the reply
  unsynced_ceiling,         // numbers that somebody else reserved are taken for synced
  leases_lost_in_crash,     // a restarted store knows no holder
  token_of_32_bits,         // the token travels through 32 bits
  wall_clock_expiry,        // grants end by the wall clock
  renew_acquires,           // renewing a grant that is over takes the lock again
  renew_of_any_holder,      // renew does not compare the request
  alive_at_expiry,          // <= for < in the comparison with the expiry
  acquire_renews,           // asking again moves the expiry
  retry_granted_anew,       // asking again with the same id gives another grant
  old_grant_told_as_fresh,  // a grant of an earlier call is told as one of this call
  dead_waiter_blocks,       // who waits and is dead is never passed over
  reader_beside_writer,     // a shared request does not look at exclusive holders
  one_permit_too_many,      // <= for < in the comparison with the number of permits
  slot_given_twice,         // every permit is the first one
  overtaking,               // a request does not look at those before it
  // the fence
  write_only_fence,          // reads neither enter nor are checked
  fence_refuses_equal,       // <= for < in the comparison with the mark
  fence_accepts_equal,       // an equal token passes from anybody
  fence_accepts_lower,       // one below the mark passes
  fence_ignores_lineage,     // any store's token passes
  fence_without_sequence,    // a holder's writes may come in any order
  fence_forgets_mark,        // the mark is dropped now and then
  float_compare,             // tokens are compared as doubles
  fence_lets_any_reader_in,  // who only reads is not compared with the write mark
  fence_forgets_readers,     // who only reads leaves no mark
  floor_not_heeded,          // marks are swept, and nothing is left in their place
  // calls that go together
  neighbours_swap_answers,  // of two in a batch each is told the answer of the other
  // the engine, by a shell around it
  deadline_from_reply,        // the lease counts from when the reply came
  no_drift_allowance,         // the deadline is the full TTL
  new_id_after_lost_reply,    // a retry goes under a new request id
  release_overtakes_acquire,  // a cancelled acquire is released while it is in flight
  release_not_sent,           // some leases are never given back
  lost_lease_comes_back,      // a late renewal brings a lost lease back
  lost_lease_hurries,         // a lost lease shortens the time for renewals of others
  renews_what_was_stopped,    // a lease whose renewing was stopped is renewed
  confirms_for_too_long,      // a confirmation may outlast the time of its caller
  answers_twice,
  answers_never,
};

std::string_view to_string(Mutation mutation);

// All but `none`.
const std::vector<Mutation>& all_mutations();

}  // namespace leasehold::simulation
