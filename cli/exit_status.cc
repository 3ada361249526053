#include "exit_status.h"

#include <algorithm>

namespace leasehold::cli {
namespace {

constexpr std::string_view kRun = "leasehold run";
constexpr std::string_view kDrill = "leasehold drill";
constexpr std::string_view kDoctor = "leasehold doctor";
constexpr std::string_view kFence = "leasehold fence";
constexpr std::string_view kRelease = "leasehold release";
constexpr std::string_view kRelay = "leasehold outbox relay";

constexpr ExitStatusDoc kDocs[] = {
    {"0", "done; for run: the command's own exit status"},
    {"1",
     "drill: something stale was accepted, an update was lost or an invariant was broken",
     {kDrill}},
    {"3", "drill: too few faults happened to say anything", {kDrill}},
    {"64", "wrong input: a flag, name, URL or duration; a --once key used with another command"},
    {"65", "outbox relay --until-empty: messages are set aside", {kRelay}},
    {"66",
     "outbox relay --until-empty: ended by a signal or --give-up-after, and messages wait",
     {kRelay}},
    {"69", "the store is not available"},
    {"70", "a defect of leasehold, or the system has no more files, processes or memory"},
    {"74", "outcome unknown: it may or may not have been done; or the output could not be written"},
    {"75",
     "busy: somebody else holds the lock (see --busy-status); release: it is not held",
     {kRun, kRelay, kRelease}},
    {"76",
     "the lease was lost, or was about to be, and the command was ended; fence: refused",
     {kRun, kRelay, kFence}},
    {"77", "this store cannot do that, or not safely"},
    {"78", "doctor: it found something at least as bad as --fail-on says", {kDoctor}},
    {"126", "the command could not be executed", {kRun}},
    {"127", "the command was not found", {kRun}},
    {"128+n", "the command was ended by signal n", {kRun}},
    {"130", "a signal came before the command was started, as while waiting for the lock", {kRun}},
};

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
  for (const ExitStatusDoc& one : kDocs) {
    const auto& of = one.only_of;
    const bool whole = command == "leasehold" || of.front().empty();
    const bool named = std::any_of(of.begin(), of.end(), [&](std::string_view name) {
      return !name.empty() && command.starts_with(name);
    });
    if (whole || named) docs.push_back(one);
  }
  return docs;
}

}  // namespace leasehold::cli
