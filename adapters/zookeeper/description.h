#pragma once

#include "leasehold/technology.h"

namespace leasehold::zookeeper {

inline Technology technology() {
  const std::string url = "zookeeper://zk-1,zk-2,zk-3/path";
  return {.name = "zookeeper",
          .title = "ZooKeeper",
          .schemes = {{.name = "zookeeper",
                       .uses = {{"store", url}, {"fence", url}},
                       .options = {{"recipe",
                                    "curator (the default) or kazoo: whose names the nodes have",
                                    "store"},
                                   {"tls", "only off: its client library has no TLS"}}}},
          .guarantee = Guarantee::correctness,
          .beware = "ZooKeeper allows TTLs only within its session limits."};
}

}  // namespace leasehold::zookeeper
