#include "examination.h"

#include <unistd.h>

#include "control.h"
#include "doctor/findings.h"
#include "fence_admin.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/gate/gate.h"

namespace leasehold::gate {
namespace {

using doctor::Findings;

void judge_running(Findings& findings, const StateFolder& folder) {
  constexpr const char* check = "gate.running";
  if (gate_runs(folder)) return findings.ok(check, "A gate runs with this folder.");
  findings.add(Severity::warning, check,
               {"No gate runs with this folder.",
                "Nothing comes through it; and whatever reaches the service past it is not fenced.",
                "leasehold gate --state " + folder.path + " ..."});
}

void judge_unanswered(Findings& findings, const StateFolder& folder) {
  constexpr const char* check = "gate.unanswered";
  const auto blocked = unanswered(folder.path);
  if (!blocked) {
    return findings.unseen(check, "which resources are blocked", blocked.error(),
                           "Run this as a user who may write to " + folder.path);
  }
  for (const ResourceName& resource : *blocked) {
    findings.add(Severity::warning, check,
                 {"Resource " + kit::in_quotes(resource.str()) +
                      " answers 503: a request to the service was "
                      "never answered.",
                  "Nobody passes before it is known that the request has had its effect or never "
                  "will: that request could land on a later one.",
                  "See that the service is done with it, then leasehold gate --state " +
                      folder.path + " --clear " + kit::in_quotes(resource.str())});
  }
  if (blocked->empty()) findings.ok(check, "No resource waits for an answer of the service.");
}

}  // namespace

Result<Diagnosis> examine(const Url& url, const ExamineOptions&) {
  const auto folder = TRY(state_folder_in(url));
  if (access(folder.path.c_str(), F_OK) != 0) {
    return fail(ErrorCode::unavailable, "there is no folder " + folder.path);
  }
  Findings findings(folder.path);
  doctor::judge_filesystem(findings, "gate.filesystem", folder.path);
  judge_running(findings, folder);
  judge_unanswered(findings, folder);
  return Diagnosis{findings.take(), std::nullopt, std::nullopt};
}

}  // namespace leasehold::gate
