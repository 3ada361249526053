#pragma once

#include "leasehold/technology.h"

namespace leasehold::toy_fence {

// "rattle" is a pattern that nobody else knows.
inline Technology technology() {
  return {.name = "toy_fence",
          .title = "a toy fence",
          .schemes = {{.name = "toyfence",
                       .uses = {{"fence", "toyfence:/garden"}, {"rattle", "toyfence:/garden"}}}}};
}

}  // namespace leasehold::toy_fence
