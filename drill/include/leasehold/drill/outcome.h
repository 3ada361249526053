// What one drill did: one store, one fence, one set of faults.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/drill/checker.h"
#include "leasehold/mode.h"

namespace leasehold::drill {

// How often a fault was injected.
struct Injected {
  std::string fault;  // as on the command line: "pause", "kill-holder"
  std::uint64_t times = 0;
};

// What came of the write of a holder that was frozen past its lease.
struct LateWrite {
  std::string resource;
  std::optional<Slot> slot = {};
  std::int64_t token = 0;      // 0: the store has none
  std::int64_t successor = 0;  // the token that had entered there meanwhile
  std::string answer = {};     // "refused", "wrote" or "unknown"
};

struct Outcome {
  std::string began;               // when, by the wall clock: RFC 3339
  std::string version;             // of the program that drilled
  std::string worker;              // the user's own program, as a command line; empty: Leasehold's
  std::string store;               // as people name it, without secrets
  std::string fence;               // the same; "none" without one
  bool fence_by_claim = false;     // the store has no tokens: a claim stands in
  std::vector<Injected> faults;    // in the order in which they were asked for
  std::string mode = "exclusive";  // how workers took their locks, as on the command line
  unsigned readers = 0;            // of the workers of each lock
  unsigned permits = 0;            // of each lock
  unsigned partitions = 0;         // of each group, which counts as a lock here
  std::uint64_t seed = 0;
  std::chrono::nanoseconds duration{};
  unsigned workers = 0;  // processes per lock
  unsigned locks = 0;
  std::chrono::milliseconds ttl{};  // what the store really gave

  // Full cycles of a pause: the holder frozen past its lease, a successor entered, the holder
  // thawed, its late write answered.
  std::uint64_t cycles = 0;
  std::uint64_t unfinished = 0;     // pauses that did not become one
  std::uint64_t stale_refused = 0;  // late writes, by their answers
  std::uint64_t stale_accepted = 0;
  std::uint64_t stale_unknown = 0;     // no answer came
  std::vector<LateWrite> late_writes;  // the first ones
  std::uint64_t reads_meanwhile = 0;   // by readers, while a writer was frozen
  std::uint64_t writes = 0;            // acknowledged by the resource
  std::uint64_t updates_lost = 0;      // of these: no trace of them in the end
  std::uint64_t foreign_values = 0;    // locks whose resource ended with what nobody wrote
  bool interrupted = false;            // judged by what had happened until then
  std::vector<std::string> notes;      // what a reader should know besides

  Report report;  // the checker's: invariants, overlaps, grants, ...
};

enum class Verdict {
  held,        // nothing stale was accepted, no update lost, no invariant broken
  damage,      // something was
  too_little,  // too few faults happened to say anything, no pause led to a refusal, or no reader
               // of several went on during one
};
Verdict judge(const Outcome& outcome);

std::uint64_t injected(const Outcome& outcome);  // over all faults

// One plain sentence.
std::string sentence(const Outcome& outcome);

}  // namespace leasehold::drill
