#include "exit_status.h"

#include <array>
#include <utility>

namespace leasehold::cli {
namespace {

constexpr std::string_view kProgram = "leasehold";

// `of` a command and those below it; empty: of every command that has no other meaning for it.
struct Meaning {
  std::string_view of;
  std::string_view text;
};

struct Documented {
  std::string_view status;
  std::array<Meaning, 3> meanings;
};

constexpr Documented kDocumented[] = {
    {"0", {{{"", "done"}, {"run", "the command ended with 0; its other statuses are passed on"}}}},
    {"1",
     {{{"drill", "something stale was accepted, an update was lost or an invariant was broken"}}}},
    {"3", {{{"drill", "too few faults happened to say anything"}}}},
    {"64",
     {{{"", "wrong input: a flag, name, URL or duration"},
       {"run",
        "wrong input: a flag, name, URL or duration; a --once key used with another command"}}}},
    {"65", {{{"outbox relay", "with --until-empty: messages are set aside"}}}},
    {"66",
     {{{"outbox relay",
        "with --until-empty: ended by a signal or --give-up-after, and messages wait"}}}},
    {"69", {{{"", "the store or the resource is not available"}}}},
    {"70", {{{"", "a defect of leasehold, or the system has no more files, processes or memory"}}}},
    {"74",
     {{{"",
        "outcome unknown: it may or may not have been done; or the output could not be written"}}}},
    {"75",
     {{{"run", "busy: somebody else holds the lock (see --busy-status)"},
       {"outbox relay", "busy: another relay is at work"},
       {"release", "the lock is not held"}}}},
    {"76",
     {{{"run", "the lease was lost, or was about to be, and the command was ended"},
       {"outbox relay", "the lease was lost, or the fence refused"},
       {"fence", "refused"}}}},
    {"77", {{{"", "this store cannot do that, or not safely"}}}},
    {"78", {{{"doctor", "it found something at least as bad as --fail-on says"}}}},
    {"126", {{{"run", "the command could not be executed"}}}},
    {"127", {{{"run", "the command was not found"}}}},
    {"128+n", {{{"run", "the command was ended by signal n"}}}},
    {"130",
     {{{"run", "a signal came before the command was started, as while waiting for the lock"},
       {"probe", "a signal came before anything was measured"},
       {"demo", "interrupted"}}}},
};

bool is_of(std::string_view command, const Meaning& meaning) {
  const std::string path = std::string(kProgram) + " " + std::string(meaning.of);
  return !meaning.of.empty() && (command == path || command.starts_with(path + " "));
}

std::string meaning_for(std::string_view command, const Documented& status) {
  std::string usual;
  for (const Meaning& one : status.meanings) {
    if (is_of(command, one)) return std::string(one.text);
    if (one.of.empty() && !one.text.empty()) usual = one.text;
  }
  return usual;
}

std::string all_meanings(const Documented& status) {
  std::string all;
  for (const Meaning& one : status.meanings) {
    if (one.text.empty()) continue;
    all += all.empty() ? "" : "; ";
    if (!one.of.empty()) all += std::string(one.of) + ": ";
    all += one.text;
  }
  return all;
}

}  // namespace

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::busy:
    case ErrorCode::timeout:
      return kExitBusy;
    case ErrorCode::cancelled:
      return kExitCancelled;
    case ErrorCode::unavailable:
      return kExitUnavailable;
    case ErrorCode::outcome_unknown:
      return kExitUnknown;
    case ErrorCode::fenced_out:
    case ErrorCode::lost:
      return kExitLost;
    case ErrorCode::unsafe_for_correctness:
    case ErrorCode::unsupported:
      return kExitCannot;
    case ErrorCode::invalid:
      return kExitUsage;
    case ErrorCode::internal:
      return kExitInternal;
  }
  return kExitInternal;
}

std::vector<ExitStatusDoc> exit_status_docs(std::string_view command) {
  std::vector<ExitStatusDoc> docs;
  for (const Documented& one : kDocumented) {
    std::string meaning = command == kProgram ? all_meanings(one) : meaning_for(command, one);
    if (!meaning.empty()) docs.push_back({std::string(one.status), std::move(meaning)});
  }
  return docs;
}

}  // namespace leasehold::cli
