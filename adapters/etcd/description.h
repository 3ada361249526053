#pragma once

#include "leasehold/technology.h"

namespace leasehold::etcd {

inline Technology technology() {
  const std::string url = "etcd://etcd-1,etcd-2,etcd-3";
  return {.name = "etcd",
          .title = "etcd",
          .schemes = {{.name = "etcd", .uses = {{"store", url}, {"fence", url}}, .tls = true}},
          .guarantee = Guarantee::correctness,
          .beware = "etcd counts a TTL in whole seconds."};
}

}  // namespace leasehold::etcd
