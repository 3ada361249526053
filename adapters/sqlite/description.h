#pragma once

#include "leasehold/technology.h"

namespace leasehold::sqlite {

inline Technology technology() {
  const std::string own_data = "sqlite:/var/lib/app/app.db";
  return {.name = "sqlite",
          .title = "SQLite, a file on one machine",
          .schemes = {{.name = "sqlite",
                       .uses = {{"store", "sqlite:/var/lib/app/locks.db"},
                                {"fence", own_data},
                                {"outbox", own_data},
                                {"table of idempotency keys", own_data}}}},
          .guarantee = Guarantee::correctness,
          .one_machine = true};
}

}  // namespace leasehold::sqlite
