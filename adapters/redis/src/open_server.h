// A server whose data is used, without locks.
#pragma once

#include <memory>
#include <string_view>

#include "introduction.h"
#include "leasehold/url.h"
#include "server.h"

namespace leasehold::redis {

struct OpenServer {
  std::shared_ptr<Server> server;
  Introduction introduction;
};

// Reads the URL and its secrets. `invalid` if it is no redis:// or rediss://; `what` begins that
// sentence: "values in Redis are".
[[nodiscard]] Result<Url> server_url(std::string_view text, std::string_view what);

// Connects, and checks that the server can be used. Fails as the lock store does.
[[nodiscard]] Result<OpenServer> open_server(const Url& url);

// The same, and `unsafe_for_correctness` if the server throws keys away that never expire;
// `consequence` ends that sentence: "and a mark that is gone lets stale holders in".
[[nodiscard]] Result<std::shared_ptr<Server>> open_keeping_server(const Url& url,
                                                                  std::string_view consequence);

// The right to one round trip.
CallContext one_call(std::stop_token stop = {});

}  // namespace leasehold::redis
