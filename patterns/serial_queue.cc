#include "leasehold/serial_queue.h"

#include <algorithm>

#include "kit/threads/thread_safety.h"
#include "kit/try.h"

namespace leasehold {
namespace {

constexpr std::int64_t kMostDoublings = 16;

void pause(Millis span, const std::stop_token& stop) {
  Mutex mutex;
  ConditionVariable over;
  MutexLock lock(mutex);
  over.wait_for(mutex, stop, span, [] { return false; });
}

}  // namespace

Status check_operation_payload(std::string_view payload) {
  if (payload.size() <= kMaxOperationPayload) return {};
  return fail(ErrorCode::invalid, "operation payload has " + std::to_string(payload.size()) +
                                      " bytes; at most " + std::to_string(kMaxOperationPayload) +
                                      " are allowed");
}

Millis pause_after(std::int64_t before, const HandleOptions& options) {
  const auto doublings = std::clamp<std::int64_t>(before, 0, kMostDoublings);
  const Millis first = detail::within_reason(options.first_pause);
  return std::min(first * (std::int64_t(1) << doublings), options.longest_pause);
}

Status work_loop(const std::function<Result<Handled>()>& handle_one,
                 const WorkLoopOptions& options) {
  while (!options.stop.stop_requested()) {
    auto handled = TRY(handle_one());
    if (options.tell) options.tell(handled);
    if (handled.what != Handled::What::nothing) continue;
    if (options.until_empty) return {};
    pause(options.poll, options.stop);
  }
  return {};
}

}  // namespace leasehold
