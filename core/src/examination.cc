#include "leasehold/examination.h"

namespace leasehold {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::unseen:
      return "unseen";
    case Severity::warning:
      return "warning";
    case Severity::danger:
      return "danger";
  }
  return "danger";
}

}  // namespace leasehold
