#include "open_server.h"

#include <chrono>
#include <utility>

#include "introduction.h"
#include "leasehold/url.h"
#include "options.h"

namespace leasehold::redis {

CallContext one_call(std::stop_token stop) {
  return {BootClock::now() + std::chrono::seconds(5), std::move(stop)};
}

Result<std::shared_ptr<Server>> open_server(std::string_view text) {
  auto url = Url::parse(text);
  if (!url) return fail(std::move(url.error()));
  if (url->scheme != "redis" && url->scheme != "rediss") {
    return fail(ErrorCode::invalid,
                "values in Redis are at a redis:// or rediss:// URL, not at " + url->redacted());
  }
  if (auto ok = url->read_secrets(); !ok) return fail(std::move(ok.error()));
  const auto options = redis_options(*url);
  if (!options) return fail(options.error());
  auto made = Server::make(options->servers.front(), options->connections);
  if (!made) return fail(std::move(made.error()));
  std::shared_ptr<Server> server = std::move(*made);
  auto introduction = examine(*server, one_call());
  if (!introduction) return fail(std::move(introduction.error()));
  return server;
}

}  // namespace leasehold::redis
