#include "leasehold/lease.h"

#include "client_core.h"
#include "kit/text/visible_text.h"

namespace leasehold {
namespace {

Error not_this_process(const detail::LeaseControl& lease) {
  return Error(ErrorCode::lost, "the lease of lock " + kit::in_quotes(lease.grant.lock.str()) +
                                    " belongs to process " +
                                    std::to_string(lease.core->process().id()) +
                                    "; a forked child does not hold it");
}

std::string in_millis(BootClock::duration length) {
  return std::to_string(std::chrono::duration_cast<Millis>(length).count()) + " ms";
}

}  // namespace

std::string_view to_string(LeaseState state) {
  switch (state) {
    case LeaseState::held:
      return "held";
    case LeaseState::uncertain:
      return "uncertain";
    case LeaseState::lost:
      return "lost";
  }
  return "lost";
}

Lease::Lease(std::shared_ptr<detail::LeaseControl> control) : control_(std::move(control)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  control_ = std::move(other.control_);
  return *this;
}

Lease::~Lease() {
  abandon();
}

// noexcept: running out of memory here ends the process, which ends the lease by its TTL.
void Lease::abandon() noexcept {
  if (control_ == nullptr || control_->releasing || control_->in_forked_child()) return;
  control_->core->drop(*control_);
}

const LockName& Lease::lock() const {
  return control_->grant.lock;
}
const RequestId& Lease::request() const {
  return control_->grant.request;
}
Mode Lease::mode() const {
  return control_->grant.mode;
}
std::optional<Slot> Lease::slot() const {
  return control_->grant.slot;
}
Millis Lease::ttl() const {
  return control_->grant.ttl;
}
LeaseState Lease::state() const {
  return control_->state();
}
BootTime Lease::deadline() const {
  return control_->end.deadline();
}

BootClock::duration Lease::remaining() const {
  return control_->remaining();
}

Status Lease::require_left(BootClock::duration margin) const {
  if (control_->in_forked_child()) return fail(not_this_process(*control_));
  const auto left = remaining();
  if (left == BootClock::duration()) {
    return fail(ErrorCode::lost,
                "the lease of lock " + kit::in_quotes(lock().str()) + " has ended");
  }
  if (left < margin) {
    return fail(ErrorCode::lost, "the lease of lock " + kit::in_quotes(lock().str()) +
                                     " has only " + in_millis(left) + " left; " +
                                     in_millis(margin) + " are needed");
  }
  return {};
}

void Lease::stop_renewing() {
  if (!control_->in_forked_child()) control_->core->stop_renewing(*control_);
}

void Lease::resume_renewing() {
  if (!control_->in_forked_child()) control_->core->resume_renewing(*control_);
}

std::stop_token Lease::lost() const {
  return control_->lost.get_token();
}

Result<ReleaseOutcome> Lease::release(Millis timeout, std::stop_token stop) {
  return end(Millis(0), timeout, stop);
}

Result<ReleaseOutcome> Lease::release_after(Millis keep_for, Millis timeout, std::stop_token stop) {
  if (auto can = check_keeping(); !can) return fail(std::move(can.error()));
  return end(keep_for, timeout, stop);
}

Status Lease::check_keeping() const {
  const StoreTraits& store = control_->core->traits();
  if (store.keeps_after_release) return {};
  return fail(error_at(store.address, Error(ErrorCode::unsupported,
                                            "this store cannot keep a lock that nobody holds")));
}

Result<ReleaseOutcome> Lease::end(Millis keep_for, Millis timeout, const std::stop_token& stop) {
  if (control_->in_forked_child()) return fail(not_this_process(*control_));
  if (!control_->begin_release()) return ReleaseOutcome::too_late;
  return control_->core->release(*control_, keep_for, timeout, stop);
}

const Token& FencedLease::token() const {
  return control().token;
}

}  // namespace leasehold
