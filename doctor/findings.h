// What examinations have in common: how findings are written down, and how a clock and a round trip
// are judged.
#pragma once

#include <chrono>
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/examination.h"
#include "leasehold/time.h"

namespace leasehold::doctor {

// What one sees, what follows, what to do.
struct Trouble {
  std::string seen;
  std::string consequence;
  std::string fix;
};

class Findings {
 public:
  // Of this server or file.
  explicit Findings(std::string where) : where_(std::move(where)) {}

  void ok(std::string check, std::string seen) {
    add(Severity::ok, std::move(check), {std::move(seen), "", ""});
  }
  void add(Severity severity, std::string check, Trouble what);
  // `what` was to be looked at, and `why` it could not be.
  void unseen(std::string check, const std::string& what, const std::string& why, std::string fix);
  void unseen(std::string check, const std::string& what, const Error& why, std::string fix);

  const std::string& where() const { return where_; }
  std::vector<Finding> take() { return std::move(list_); }

 private:
  std::string where_;
  std::vector<Finding> list_;
};

void append(std::vector<Finding>& all, std::vector<Finding> more);

using Nanos = std::chrono::nanoseconds;
using WallTime = std::chrono::sys_time<Nanos>;

WallTime wall_clock_now();

// A server's clock as one round trip shows it: it was read between `sent` and `received`.
struct ClockSample {
  BootTime sent;
  BootTime received;
  WallTime wall_sent;  // this machine's wall clock at `sent`
  WallTime server;
  Nanos resolution{0};  // the server's time is somewhere in [server, server + resolution]

  Nanos round_trip() const { return received - sent; }
  // How far the server is ahead of this machine, plus or minus uncertainty().
  Nanos ahead() const { return server + resolution / 2 - (wall_sent + round_trip() / 2); }
  Nanos uncertainty() const { return (round_trip() + resolution) / 2; }
};

// Calls `read`, which asks the server for its time, and notes what was before and after.
template <class Read>
Result<ClockSample> sample_clock(Read read) {
  ClockSample sample{BootClock::now(), {}, wall_clock_now(), {}};
  Result<WallTime> server = read();
  sample.received = BootClock::now();
  if (!server) return fail(std::move(server.error()));
  sample.server = *server;
  return sample;
}

enum class Expiry {
  wall_clock,   // the server's wall clock ends leases
  steady_clock  // it counts them on a clock that cannot be set
};

// "<technology>.clock": how the clocks differ, and whether the server's moved while it was looked
// at. `samples` in the order they were taken; none: unseen.
void judge_clock(Findings& findings, const std::string& technology,
                 const std::vector<ClockSample>& samples, Expiry expiry, Millis ttl);

// "<technology>.round_trip", or what `check` is: `what` was done so many times.
void judge_round_trip(Findings& findings, const std::string& check, const std::string& what,
                      std::vector<Nanos> trips, Millis ttl);

// "filesystem": of the folder of a lock file or of fenced data. `named`: the check's whole name.
void judge_filesystem(Findings& findings, const std::string& named, const std::string& path);

// "1.2 ms", "35 s"
std::string in_words(Nanos span);

// "1 resource", "2 resources"
std::string counted(std::integral auto number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

}  // namespace leasehold::doctor
