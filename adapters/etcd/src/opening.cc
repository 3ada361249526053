#include "opening.h"

#include "answer.h"
#include "version.h"
#include "wire.pb.h"

namespace leasehold::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto kOpenWithin = 4500ms;

Result<std::string> fault_of(const std::string& address, const std::string& version) {
  const auto parsed = Version::parse(version);
  if (!parsed || *parsed < kOldestVersion) {
    return fail(ErrorCode::unavailable,
                address + ": etcd is too old: version 3.4 or later is needed",
                "version " + version);
  }
  const std::string fault = known_fault(*parsed);
  return fault.empty() ? "" : "etcd " + version + ": " + fault;
}

}  // namespace

Error not_opened(const std::string& address, const Failure& failure) {
  Error error = failure.error(address);
  if (failure.ambiguous()) {
    error =
        Error(ErrorCode::unavailable, address + ": no etcd server answers there", failure.words);
  }
  return error;
}

Result<Opened> open_transport(const Options& options) {
  auto made = Transport::make(options);
  if (!made) return fail(std::move(made.error()));
  Opened opened{std::move(*made), ""};
  if (!options.user.empty()) {
    const auto failure = answer_of<std::optional<Failure>>(
        [&](auto done) { opened.transport->authenticate(0, std::move(done)); });
    if (failure) return fail(not_opened(options.address, *failure));
  }
  const Limits limits{.deadline = BootClock::now() + kOpenWithin, .stop = {}, .repeat = true};
  const auto status = answer_of<tl::expected<wire::StatusResponse, Failure>>([&](auto done) {
    opened.transport->call<wire::StatusRequest, wire::StatusResponse>(
        "/etcdserverpb.Maintenance/Status", {}, limits, std::move(done));
  });
  if (!status) return fail(not_opened(options.address, status.error()));
  auto fault = fault_of(options.address, status->version());
  if (!fault) return fail(std::move(fault.error()));
  opened.fault = std::move(*fault);
  return opened;
}

}  // namespace leasehold::etcd
