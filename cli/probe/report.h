// What `leasehold probe` found out, for a person and for a program.
#pragma once

#include <string>
#include <vector>

#include "leasehold/probe/measure.h"
#include "leasehold/probe/sizing.h"

namespace leasehold::cli {

struct ProbeReport {
  probe::Measurement measured;
  probe::MeasureOptions how;
  int load = 0;
  unsigned processors = 1;
  probe::Workload work;

  bool ended_early() const { return measured.length < how.duration; }
};

// "10.0 s, without load, on 2 processors"
std::string circumstances(const ProbeReport& report);

std::string probe_text(const ProbeReport& report);
// The names and types of the fields are part of the program's interface.
std::string probe_json(const ProbeReport& report);
// A picture of its own: no script, no font, nothing to load.
std::string probe_svg(const ProbeReport& report);

inline constexpr const char* kNeverZero = "No TTL makes it zero; that is what the fence is for.";

}  // namespace leasehold::cli
