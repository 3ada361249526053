#include "doctor/findings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "kit/system/filesystem_kind.h"

namespace leasehold::doctor {
namespace {

using namespace std::chrono_literals;

// Clocks that are kept by NTP are closer than this.
constexpr Nanos kUnremarkable = 100ms;
// A clock that runs more than one part in a thousand wrong was moved.
constexpr Nanos kStepAllowance = 2ms;

Nanos magnitude(Nanos span) {
  return span < 0ns ? -span : span;
}

// What lies between two readings by the server's clock and not by this machine's; zero if it can be
// explained by the round trips.
Nanos moved_between(const ClockSample& a, const ClockSample& b) {
  const auto middle = [](const ClockSample& it) { return it.sent + it.round_trip() / 2; };
  const Nanos here = middle(b) - middle(a);
  const Nanos there = b.server - a.server;
  const Nanos doubt = a.uncertainty() + b.uncertainty() + here / 1000 + kStepAllowance;
  const Nanos moved = there - here;
  return magnitude(moved) > doubt ? moved : 0ns;
}

Nanos furthest_move(const std::vector<ClockSample>& samples) {
  Nanos furthest = 0ns;
  for (const ClockSample& later : samples) {
    const Nanos moved = moved_between(samples.front(), later);
    if (magnitude(moved) > magnitude(furthest)) furthest = moved;
  }
  return furthest;
}

const char* const kKeepTime =
    "Let the machine of the server keep its time by NTP, slewing and "
    "never stepping (chrony: no makestep after the start)";

}  // namespace

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void Findings::add(Severity severity, std::string check, Trouble what) {
  list_.push_back({std::move(check), severity, where_, std::move(what.seen),
                   std::move(what.consequence), std::move(what.fix)});
}

void Findings::unseen(std::string check, const std::string& what, const std::string& why,
                      std::string fix) {
  add(Severity::unseen, std::move(check),
      {"It could not be seen " + what + ": " + why + ".", "Nobody knows, then; it is not ok.",
       std::move(fix)});
}

void Findings::unseen(std::string check, const std::string& what, const Error& why,
                      std::string fix) {
  unseen(std::move(check), what, sentence(why), std::move(fix));
}

WallTime wall_clock_now() {
  return std::chrono::time_point_cast<Nanos>(std::chrono::system_clock::now());
}

std::string in_words(Nanos span) {
  struct Unit {
    double length;
    const char* name;
  };
  constexpr std::array<Unit, 6> units = {
      {{86400e9, "d"}, {3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}};
  if (span == 0ns) return "0 s";
  const double length = std::abs(static_cast<double>(span.count()));
  const auto* unit = std::find_if(units.begin(), units.end() - 1,
                                  [&](const Unit& it) { return length >= it.length; });
  char text[64];
  std::snprintf(text, sizeof text, "%.3g %s", length / unit->length, unit->name);
  return text;
}

void judge_clock(Findings& findings, const std::string& technology,
                 const std::vector<ClockSample>& samples, Expiry expiry, Millis ttl) {
  const std::string check = technology + ".clock";
  if (samples.empty()) {
    findings.unseen(check, "what the server's clock says", "it did not tell the time", "");
    return;
  }
  const bool ends_leases = expiry == Expiry::wall_clock;
  if (const Nanos moved = furthest_move(samples); moved != 0ns) {
    findings.add(
        ends_leases ? Severity::danger : Severity::warning, check,
        {"The server's clock moved by " + in_words(moved) + (moved > 0ns ? " forward" : " back") +
             " in the " + in_words(samples.back().received - samples.front().sent) +
             " in which it was looked at.",
         ends_leases ? "Leases end by that clock: moved forward it gives a lock to a second holder "
                       "while the first still works, moved back it keeps a dead one's lock."
                     : "Leases do not end by that clock, but whatever moves it is worth finding.",
         kKeepTime});
    return;
  }
  const ClockSample& best = *std::min_element(
      samples.begin(), samples.end(),
      [](const auto& a, const auto& b) { return a.uncertainty() < b.uncertainty(); });
  const std::string measured = in_words(best.ahead()) +
                               (best.ahead() < 0ns ? " behind" : " ahead of") +
                               " this machine's, give or take " + in_words(best.uncertainty());
  const Nanos certain = magnitude(best.ahead()) - best.uncertainty();
  const std::string seen = "The server's clock is " + measured + ".";
  if (certain <= kUnremarkable) {
    findings.ok(check, seen);
    return;
  }
  if (ends_leases && certain >= ttl / 3) {
    findings.add(Severity::warning, check,
                 {seen,
                  "Leases end by the server's clock. As long as both run on, nothing happens; but "
                  "who sets it right by that much ends leases early or makes them last longer.",
                  kKeepTime});
    return;
  }
  findings.add(Severity::note, check,
               {seen,
                "Leasehold does not compare the two clocks, so leases do not mind; times in logs "
                "do.",
                "Let both machines keep their time by NTP"});
}

void judge_round_trip(Findings& findings, const std::string& check, const std::string& what,
                      std::vector<Nanos> trips, Millis ttl) {
  if (trips.empty()) {
    findings.unseen(check, "how long it takes to " + what, "it was never answered", "");
    return;
  }
  std::sort(trips.begin(), trips.end());
  const Nanos worst = trips.back();
  const std::string seen = "To " + what + " took " + in_words(trips[trips.size() / 2]) +
                           ", at worst " + in_words(worst) + " of " + std::to_string(trips.size()) +
                           " times, and the TTL is " + in_words(ttl) + ".";
  if (worst < ttl / 10) {
    findings.ok(check, seen);
    return;
  }
  const auto enough = std::chrono::ceil<std::chrono::seconds>(worst * 10).count() + 1;
  findings.add(worst >= ttl / 3 ? Severity::danger : Severity::warning, check,
               {seen,
                "A renewal begins after a third of the TTL, and must have time to be tried again: "
                "leases will be lost under holders that work.",
                "Use a TTL of at least " + std::to_string(enough) +
                    "s, or find out what makes the server slow"});
}

void judge_filesystem(Findings& findings, const std::string& named, const std::string& path) {
  const auto kind = kit::filesystem_at(path);
  if (!kind) {
    findings.unseen(named, "which filesystem it is on", kind.error(), "");
    return;
  }
  const std::string seen = "It is on " + kind->name;
  if (kind->what == kit::FilesystemClass::network) {
    findings.add(Severity::danger, named,
                 {seen + ", a filesystem of a network.",
                  "Its file locks are leases themselves, and may end under a writer that is "
                  "frozen: then two write at once.",
                  "Move it to a disk of this machine, or use a store with a server"});
    return;
  }
  if (kind->what == kit::FilesystemClass::unknown) {
    findings.add(Severity::warning, named,
                 {seen + ", which is not known to be local.",
                  "If other machines mount it too, its locks may not hold between them.",
                  "Move it to a disk of this machine"});
    return;
  }
  if (kind->in_memory) {
    findings.add(Severity::warning, named,
                 {seen + ", which is empty after a reboot.",
                  "Its counters and marks are gone then: fences refuse the new tokens, or a fence "
                  "begins without a mark.",
                  "Move it to a disk"});
    return;
  }
  findings.ok(named, seen + ", a local filesystem.");
}

}  // namespace leasehold::doctor
