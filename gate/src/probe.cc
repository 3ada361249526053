#include "probe.h"

#include "text.h"

namespace leasehold::gate {
namespace {

constexpr std::string_view kPlace = "{resource}";

Async<bool> is_done(GateCore& core, const ResourceName& resource) {
  std::string path = *core.options.probe;
  path.replace(path.find(kPlace), kPlace.size(), percent_encoded(resource.str()));
  std::string error;
  const auto connection = co_await core.upstream.connect(error);
  if (!connection) co_return false;
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: leasehold-gate\r\nConnection: close\r\n\r\n";
  const NetTime by = NetClock::now() + core.options.answer_timeout;
  const auto sent = co_await connection->send(request, by);
  if (sent.error) co_return false;
  const HeadRead read = co_await read_head(*connection, by);
  if (read.error || read.bad) co_return false;
  const auto head = parse_response(connection->in().substr(0, read.size), false);
  co_return head && (head->status == 200 || head->status == 204);
}

}  // namespace

Status check_probe(const std::string& path) {
  const std::size_t at = path.find(kPlace);
  const bool plain = path.find_first_of(" \t\r\n#") == std::string::npos;
  if (path.starts_with('/') && at != std::string::npos && plain) return {};
  return fail(ErrorCode::invalid, "the probe '" + path + "' is not a path like /quiet/{resource}");
}

Async<void> probe_unanswered(GateCore& core) {
  for (const ResourceName& resource : core.turns.unanswered()) {
    const std::uint64_t asked_about = core.turns.misses(resource);
    const bool done = co_await is_done(core, resource);
    if (core.stopping) co_return;
    // The answer may be older than what went missing meanwhile.
    if (!done || core.turns.misses(resource) != asked_about) continue;
    if (!core.turns.clear(resource)) continue;
    core.log("cleared by the probe: resource=" + json_string(resource.str()));
  }
}

}  // namespace leasehold::gate
