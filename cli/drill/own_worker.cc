#include "cli/drill/own_worker.h"

#include "cli/command/arguments.h"
#include "cli/command/output.h"

namespace leasehold::cli {

void OwnWorker::declare(Arguments& arguments) {
  arguments.optional_rest_after_dashes(
      "COMMAND", command_,
      "Your own program as the worker. It takes the lock that LEASEHOLD_LOCK names in the store "
      "that LEASEHOLD_STORE names, with a TTL of LEASEHOLD_TTL, changes something, and gives the "
      "lock back; it is started as often as needed. Such a drill makes 3 cycles, or --cycles, with "
      "a TTL of 2s, or --ttl. See docs/drill-your-own.md");
  arguments.option("--watch", "COMMAND", watch_,
                   "For your own program, and needed there: a shell command that prints what the "
                   "workers change, as in 'cat total'");
  arguments.option("--lock", "NAME", lock_, "For your own program: the lock; default drill");
}

std::string OwnWorker::command_line() const {
  std::string text;
  for (const std::string& word : command_) text += (text.empty() ? "" : " ") + shown(word);
  return text;
}

Status OwnWorker::check_not_chosen() const {
  for (const auto& [name, value] : {std::pair("--watch", &watch_), {"--lock", &lock_}}) {
    if (!*value) continue;
    return fail(ErrorCode::invalid, std::string(name) +
                                        " is for a program of your own, and there is none: name "
                                        "it last, as in 'leasehold drill … -- ./my-worker'");
  }
  return {};
}

Result<drill::UserPlan> OwnWorker::plan(const drill::Plan& common,
                                        const std::optional<std::string>& faults) const {
  const auto wrong = [](const std::string& text) { return fail(ErrorCode::invalid, text); };
  if (!watch_) {
    return wrong(
        "--watch is missing: the command that prints what the workers change, as in "
        "--watch 'cat total'");
  }
  if (faults && *faults != "pause") {
    return wrong("--fault: with a program of your own there is only pause");
  }
  if (common.store == "all") return wrong("--store all: with a program of your own name one store");
  const bool fenced = !common.fence.empty() && common.fence != "none";
  if (fenced && common.fence.find(':') == std::string::npos) {
    return wrong(
        "--fence: with a program of your own give the URL of its fence, as in "
        "file:/srv/app/total, not '" +
        common.fence + "'");
  }
  drill::UserPlan plan;
  plan.command = command_;
  plan.store = common.store;
  if (fenced) plan.fence = common.fence;
  plan.watch = *watch_;
  plan.lock = lock_.value_or(plan.lock);
  plan.ttl = common.ttl.value_or(plan.ttl);
  if (common.cycles > 0) plan.cycles = common.cycles;
  plan.seed = common.seed;
  return plan;
}

}  // namespace leasehold::cli
