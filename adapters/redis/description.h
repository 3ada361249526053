#pragma once

#include "leasehold/technology.h"

namespace leasehold::redis {

inline Technology technology() {
  const std::vector<UrlOption> of_keys = {{"prefix", "how the keys of locks begin; default lock:"},
                                          {"connections", "how many at most; default 64"}};
  const auto one_server = [&](const std::string& name) {
    Scheme scheme{.name = name,
                  .uses = {{"store", name + "://host"},
                           {"fence", name + "://host"},
                           {"serial queue", name + "://host"},
                           {"place to send messages to", name + "://host/0?stream=NAME"}},
                  .options = of_keys,
                  .tls = true,
                  .variant = name != "redis"};
    scheme.options.push_back({"stream", "where messages go", "place to send messages to"});
    return scheme;
  };
  Scheme redlock{.name = "redlock",
                 .uses = {{"store", "redlock://redis-1,redis-2,redis-3"}},
                 .options = of_keys,
                 .tls = true};
  redlock.options.push_back({"node_timeout", "milliseconds that one node may take; default 100"});
  return {.name = "redis",
          .title = "Redis",
          .schemes = {one_server("redis"), one_server("rediss"), std::move(redlock)},
          .guarantee = Guarantee::efficiency,
          .beware = "After a failover Redis may have forgotten the lock."};
}

}  // namespace leasehold::redis
