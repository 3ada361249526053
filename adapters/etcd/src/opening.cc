#include "opening.h"

#include "answer.h"
#include "kit/try.h"
#include "version.h"
#include "wire.pb.h"

namespace leasehold::etcd {

Error not_opened(const std::string& address, const Failure& failure) {
  if (!failure.ambiguous()) return failure.error(address);
  return error_at(address,
                  Error(ErrorCode::unavailable, "no etcd server answers there", failure.words));
}

Result<Opened> open_transport(const Options& options, const CallContext& context) {
  const auto time = context.deadline - BootClock::now();
  auto made = TRY(Transport::make(options, std::chrono::ceil<Millis>(time)));
  Opened opened{std::move(made), ""};
  const Limits limits{
      .deadline = context.deadline, .stop = context.stop, .repeat = true, .patient = true};
  if (!options.user.empty()) {
    const auto failure = answer_of<std::optional<Failure>>(
        [&](auto done) { opened.transport->authenticate(0, limits, std::move(done)); });
    if (failure) return fail(not_opened(options.address, *failure));
  }
  const auto status = answer_of<tl::expected<wire::StatusResponse, Failure>>([&](auto done) {
    opened.transport->call<wire::StatusRequest, wire::StatusResponse>(
        "/etcdserverpb.Maintenance/Status", {}, limits, std::move(done));
  });
  if (!status) return fail(not_opened(options.address, status.error()));
  auto fault = TRY(fault_of(options.address, status->version()));
  opened.fault = std::move(fault);
  return opened;
}

}  // namespace leasehold::etcd
