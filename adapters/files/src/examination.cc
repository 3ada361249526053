#include "examination.h"

#include <unistd.h>

#include "doctor/findings.h"
#include "fence_admin.h"
#include "kit/try.h"
#include "place.h"

namespace leasehold::files {
namespace {

using doctor::Findings;

void judge_permissions(Findings& findings, const std::string& folder) {
  constexpr const char* check = "files.permissions";
  if (eaccess(folder.c_str(), W_OK | X_OK) == 0) {
    return findings.ok(check, "This user may write to the folder " + folder + ".");
  }
  findings.add(Severity::danger, check,
               {"This user may not write to the folder " + folder + ".",
                "The fence keeps its mark and its versions there: nobody can enter.",
                "chown or chmod the folder for the user that writes"});
}

}  // namespace

Result<Diagnosis> examine(const Url& url, const ExamineOptions&) {
  const auto checked = TRY(FileUrl::of(url));
  const auto place = TRY(Place::parse(checked.path));
  const std::string folder = place.folder.string();
  if (access(folder.c_str(), F_OK) != 0) {
    return fail(ErrorCode::unavailable, "there is no folder " + folder);
  }
  Findings findings(place.path.string());
  doctor::judge_filesystem(findings, "files.filesystem", folder);
  judge_permissions(findings, folder);
  return Diagnosis{findings.take(), std::nullopt, std::nullopt};
}

}  // namespace leasehold::files
