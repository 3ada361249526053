// The fence and idempotency keys together, in a SQLite database of your own: see
// leasehold/sql/fenced_once.h. Who is inside the fence has the write lock, so that run() waits for
// both up to options.wait.
#pragma once

#include "leasehold/sql/fenced_once.h"
#include "leasehold/sqlite/fence.h"

namespace leasehold::sqlite {

using FencedTransaction = sql::FencedTransaction<Driver>;
using FencedOnce = sql::FencedOnce<Driver>;

}  // namespace leasehold::sqlite
