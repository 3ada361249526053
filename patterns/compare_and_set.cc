#include "leasehold/compare_and_set.h"

#include "waiting/backoff.h"

namespace leasehold {

class CompareAndSetTries::Pauses : public waiting::Backoff {
 public:
  using Backoff::Backoff;
};

CompareAndSetTries::CompareAndSetTries(const CompareAndSetOptions& options)
    : most_(options.attempts), pauses_(std::make_unique<Pauses>(options.wait, options.stop)) {}

CompareAndSetTries::~CompareAndSetTries() = default;

Status CompareAndSetTries::wait_for_next() {
  const std::string reason =
      "somebody else was faster " + std::to_string(++conflicts_) + " times, nothing was written";
  if (conflicts_ == most_) return fail(ErrorCode::busy, reason);
  if (!pauses_->pause()) return fail(pauses_->give_up(reason));
  return {};
}

}  // namespace leasehold
