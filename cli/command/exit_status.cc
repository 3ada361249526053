#include "cli/command/exit_status.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/command/arguments.h"

namespace leasehold::cli {
namespace {

constexpr std::string_view kProgram = "leasehold";

// They open no store and no resource of the user's.
constexpr std::string_view kByThemselves[] = {"advise", "completion", "demo", "probe", "version"};

// `of` a command and those below it; empty: of every command that has no other meaning for it.
struct Meaning {
  std::string_view of;
  std::string_view text;
  bool besides_usual = false;
};

struct Documented {
  std::string_view status;
  std::array<Meaning, 3> meanings;
  bool from_a_store = false;
};

constexpr Documented kDocumented[] = {
    {"0", {{{"", "done"}, {"run", "the command ended with 0; its other statuses are passed on"}}}},
    {"1",
     {{{"drill", "something stale was accepted, an update was lost or an invariant was broken"}}}},
    {"3", {{{"drill", "too few faults happened to say anything"}}}},
    {"64",
     {{{"", "wrong input: a flag, name, URL or duration"},
       {"run", "a --once key used with another command", /*besides_usual=*/true}}}},
    {"65", {{{"outbox relay", "with --until-empty: messages are set aside"}}}},
    {"66",
     {{{"outbox relay",
        "with --until-empty: ended by a signal or --give-up-after, and messages wait"}}}},
    {"69", {{{"", "the store or the resource is not available"}}}, /*from_a_store=*/true},
    {"70", {{{"", "a defect of leasehold, or the system has no more files, processes or memory"}}}},
    {"74",
     {{{"",
        "outcome unknown: it may or may not have been done; or the output could not be written"}}}},
    {"75",
     {{{"run", "busy: somebody else holds the lock (see --busy-status)"},
       {"outbox relay", "busy: another relay is at work"},
       {"release", "the lock is not held"}}}},
    {"76",
     {{{"run", "the lease was lost, or was about to be: the command was ended, or not started"},
       {"outbox relay", "the lease was lost, or the fence refused"},
       {"fence", "refused"}}}},
    {"77",
     {{{"", "this store cannot do that, or not safely; or an unknown kind of store"}}},
     /*from_a_store=*/true},
    {"78", {{{"doctor", "it found something at least as bad as --fail-on says"}}}},
    {"126", {{{"run", "the command could not be executed"}}}},
    {"127", {{{"run", "the command was not found"}}}},
    {"128+n", {{{"run", "the command was ended by signal n"}}}},
    {"130",
     {{{"run", "a signal came before the command was started, as while waiting for the lock"},
       {"probe", "a signal came before anything was measured"},
       {"demo", "interrupted"}}}},
};

bool is_of(std::string_view path, std::string_view command) {
  const std::string named = std::string(kProgram) + " " + std::string(command);
  return !command.empty() && (path == named || path.starts_with(named + " "));
}

bool is_by_itself(std::string_view path) {
  return std::any_of(std::begin(kByThemselves), std::end(kByThemselves),
                     [&](std::string_view command) { return is_of(path, command); });
}

std::string meaning_for(std::string_view path, const Documented& status) {
  if (status.from_a_store && is_by_itself(path)) return "";
  std::string usual;
  for (const Meaning& one : status.meanings) {
    if (one.of.empty() && !one.text.empty()) usual = one.text;
  }
  for (const Meaning& one : status.meanings) {
    if (!is_of(path, one.of)) continue;
    return one.besides_usual ? usual + "; " + std::string(one.text) : std::string(one.text);
  }
  return usual;
}

// A build may be without the command.
bool is_there(const CommandDoc& program, const Meaning& meaning) {
  const std::string_view name = meaning.of.substr(0, meaning.of.find(' '));
  return name.empty() || std::any_of(program.children.begin(), program.children.end(),
                                     [&](const CommandDoc& one) { return one.name == name; });
}

std::string all_meanings(const CommandDoc& program, const Documented& status) {
  std::string all;
  for (const Meaning& one : status.meanings) {
    if (one.text.empty() || !is_there(program, one)) continue;
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

std::vector<ExitStatusDoc> exit_status_docs(const CommandDoc& command) {
  std::vector<ExitStatusDoc> docs;
  for (const Documented& one : kDocumented) {
    std::string meaning =
        command.path == kProgram ? all_meanings(command, one) : meaning_for(command.path, one);
    if (!meaning.empty()) docs.push_back({std::string(one.status), std::move(meaning)});
  }
  return docs;
}

}  // namespace leasehold::cli
