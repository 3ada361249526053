// The program's exit statuses: documented in --help, the manual page and docs/run.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"

namespace leasehold::cli {

inline constexpr int kExitDamage = 1;
inline constexpr int kExitTooLittle = 3;
inline constexpr int kExitUsage = 64;
inline constexpr int kExitSetAside = 65;
inline constexpr int kExitNotEmpty = 66;
inline constexpr int kExitUnavailable = 69;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitUnknown = 74;
inline constexpr int kExitBusy = 75;
inline constexpr int kExitLost = 76;
inline constexpr int kExitCannot = 77;
inline constexpr int kExitFindings = 78;
inline constexpr int kExitCancelled = 130;

int exit_status(ErrorCode code);

struct ExitStatusDoc {
  std::string status;
  std::string meaning;
};
// What `command`, as in "leasehold outbox relay", may end with; for "leasehold" all of them, with
// the commands that they are of.
std::vector<ExitStatusDoc> exit_status_docs(std::string_view command);

}  // namespace leasehold::cli
