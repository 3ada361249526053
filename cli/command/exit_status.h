// The program's exit statuses: documented in --help, the manual page and docs/run.md.
#pragma once

#include <string>
#include <vector>

#include "leasehold/error.h"

namespace leasehold::cli {

struct CommandDoc;

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
// What `command` may end with; for the program itself those of all its commands, with their names.
std::vector<ExitStatusDoc> exit_status_docs(const CommandDoc& command);

}  // namespace leasehold::cli
