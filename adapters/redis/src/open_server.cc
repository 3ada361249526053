#include "open_server.h"

#include <chrono>
#include <string>
#include <utility>

#include "kit/text/resource_url.h"
#include "kit/try.h"
#include "options.h"

namespace leasehold::redis {

CallContext one_call(std::stop_token stop) {
  return {BootClock::now() + std::chrono::seconds(5), std::move(stop)};
}

Result<Url> server_url(std::string_view text, std::string_view what) {
  return kit::resource_url(text, {"redis", "rediss"},
                           std::string(what) + " at a redis:// or rediss:// URL");
}

Result<OpenServer> open_server(const Url& url) {
  const auto options = TRY(redis_options(url));
  auto made = TRY(Server::make(options.servers.front(), options.connections));
  std::shared_ptr<Server> server = std::move(made);
  auto introduction = TRY(examine(*server, one_call()));
  return OpenServer{std::move(server), std::move(introduction)};
}

Result<std::shared_ptr<Server>> open_keeping_server(const Url& url, std::string_view consequence) {
  auto opened = TRY(open_server(url));
  if (!opened.introduction.evicts_lasting_keys) return std::move(opened.server);
  return fail(error_at(
      opened.server->address(),
      Error(ErrorCode::unsafe_for_correctness,
            "the server throws any key away when its memory is full, " + std::string(consequence) +
                "; set maxmemory-policy to noeviction or to one of the volatile ones")));
}

}  // namespace leasehold::redis
