// Judges a history: what must hold, what can only be counted, and what is measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/drill/history.h"

namespace leasehold::drill {

enum class Check : std::uint8_t {
  I1,  // tokens strictly increase per lock in the order of the grants
  I2,  // a resource never accepts a token below its mark
  I3,  // an accepted token was granted once, to this request, for this lock of this store
  I4,  // no accepted update is lost
  I5,  // release and renew touch only their own grant
  I6,  // a store never has two unexpired exclusive grants of a lock, by its own clock
  I7,  // nor a shared beside an exclusive one, more permits than there are, or a slot twice
  I8,  // a fence lets no reader in below its write mark, no writer below its read mark, and nobody
       // up to its floor where nobody has written since the sweep
  Q1,  // a grant fits beside every request that came before it and still waits
  H1,  // the holder's deadline is not later than the store's
  F1,  // a resource refuses only what is stale, foreign or out of order
  R1,  // what a client was told of its release is true
};
inline constexpr std::size_t kChecks = 12;
std::string_view to_string(Check check);

struct Violation {
  Check check;
  std::string sentence;              // what is wrong, for a person
  std::vector<std::size_t> records;  // positions in History::records(), in order
};

// D1, of leases that exclude each other. A client believes from its grant until it releases, is
// told of the loss, or dies.
struct Overlaps {
  std::uint64_t count = 0;            // grants told while another client still believed
  std::uint64_t before_deadline = 0;  // of these: before the other's deadline was reached
  std::vector<std::size_t> first;     // the two records of the first one
};

// L1, in nanoseconds. Only while no fault lasts. A lock is free while somebody who waits for it
// fits beside all who hold it.
struct Liveness {
  std::int64_t longest_idle = 0;         // from free to granted, as far as somebody waited for it
  std::int64_t longest_after_fault = 0;  // from the end of the last fault, if wanted all the time
  std::size_t idle_until = 0;            // the record that ended longest_idle
};

struct Report {
  std::vector<Violation> violations;  // the first of each check, see CheckOptions
  std::uint64_t counts[kChecks] = {};
  Overlaps overlaps;
  std::uint64_t old_epoch_grants = 0;  // D2
  Liveness liveness;
  std::uint64_t grants = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  bool store_log = false;  // of every lock that was granted, there are the store's own records

  // False: it could not be looked at, and a count of 0 says nothing.
  bool judged(Check check) const;
  bool clean() const { return violations.empty(); }
  std::uint64_t count(Check check) const { return counts[static_cast<std::size_t>(check)]; }
};

struct CheckOptions {
  std::size_t violations_kept_per_check = 3;
};

// One pass over the history, which is sorted first. Where a lock has no record of its store, what
// clients were told stands in for the grants; then I5, I6, I7, Q1, H1 and R1 cannot be judged.
Report check(History& history, const CheckOptions& options = {});

// The violations with the records they name, then the counts; several lines.
std::string to_text(const Report& report, const History& history);

}  // namespace leasehold::drill
