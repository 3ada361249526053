// The fence and idempotency keys together, in a PostgreSQL database of your own: see
// leasehold/sql/fenced_once.h. For who is inside the fence run() waits as Fence does, and then up
// to options.wait for who is at work under the same key.
#pragma once

#include "leasehold/postgres/fence.h"
#include "leasehold/sql/fenced_once.h"

namespace leasehold::postgres {

using FencedTransaction = sql::FencedTransaction<Driver>;
using FencedOnce = sql::FencedOnce<Driver>;

}  // namespace leasehold::postgres
