#pragma once

#include "leasehold/technology.h"

namespace leasehold::toy_store {

inline Technology technology() {
  return {.name = "toy_store",
          .title = "a toy",
          .schemes = {{.name = "toy",
                       .uses = {{"store", "toy://box"}},
                       .options = {{"colour", "what it is painted in"}}}},
          .guarantee = Guarantee::efficiency,
          .beware = "A toy forgets."};
}

}  // namespace leasehold::toy_store
