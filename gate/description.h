#pragma once

#include "leasehold/technology.h"

namespace leasehold::gate {

inline Technology technology() {
  return {.name = "gate",
          .title = "the HTTP gate",
          .schemes = {{.name = "gate", .uses = {{"fence", "gate:/var/lib/gate"}}}}};
}

}  // namespace leasehold::gate
