#include "waiting/call_wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace leasehold::waiting {
namespace {

constexpr Millis kLook{20};

}  // namespace

Alarm::Alarm() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Alarm::raise() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
}

CallWait::CallWait(const CallContext& context, const Alarm& closing)
    : context_(context), closing_(closing) {}
CallWait::~CallWait() = default;

// Few calls have a stop token, and fewer wait: the descriptor is made when it is needed. Where
// there is none left, the token is looked at now and then: what was sent must still be waited for.
void CallWait::arm() {
  if (on_stop_ || !context_.stop.stop_possible()) return;
  try {
    stop_alarm_.emplace();
  } catch (const std::system_error&) {
    return;
  }
  on_stop_.emplace(context_.stop, [this] { stop_alarm_->raise(); });
}

BootClock::duration CallWait::may_sleep() const {
  const auto left =
      std::max<BootClock::duration>(context_.deadline - BootClock::now(), BootClock::duration(0));
  const bool must_look = context_.stop.stop_possible() && !stop_alarm_;
  return must_look ? std::min<BootClock::duration>(left, kLook) : left;
}

bool CallWait::until(int fd, bool to_write) {
  arm();
  for (;;) {
    std::array<pollfd, 3> polled = {{{fd, static_cast<short>(to_write ? POLLOUT : POLLIN), 0},
                                     {closing_.fd(), POLLIN, 0},
                                     {stop_alarm_ ? stop_alarm_->fd() : -1, POLLIN, 0}}};
    const auto left = may_sleep();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    const int ready = ppoll(polled.data(), polled.size(), &limit, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && lasts({})) continue;
    if (ready <= 0) return false;
    if (polled[1].revents != 0 || polled[2].revents != 0) return false;
    return true;
  }
}

Error CallWait::ended(const std::string& doing, bool sent) const {
  const std::string why = stopped()                               ? "stop was requested"
                          : BootClock::now() >= context_.deadline ? "the time for it was over"
                                                                  : "the client is being closed";
  if (sent) return Error(ErrorCode::outcome_unknown, why + " while " + doing);
  return Error(stopped() ? ErrorCode::cancelled : ErrorCode::unavailable, why + " while " + doing);
}

}  // namespace leasehold::waiting
