// A server whose data is used, without locks.
#pragma once

#include <memory>
#include <string_view>

#include "server.h"

namespace leasehold::redis {

// Connects, and checks that the server can be used. `invalid` for a URL that is no redis:// or
// rediss://; else as the lock store fails.
[[nodiscard]] Result<std::shared_ptr<Server>> open_server(std::string_view url);

// The right to one round trip.
CallContext one_call(std::stop_token stop = {});

}  // namespace leasehold::redis
