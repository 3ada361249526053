// The scripts of the serial queue.
#pragma once

#include "script.h"

namespace leasehold::redis {

// All take the same KEYS: ready, busy, owners, attempts, aside, ids; ARGV[1] is how the keys of the
// operations begin, which the entity's name follows. An error QUEUEFORMAT and a number: the queue
// is in another format, and nothing was done; 0 is that of the first builds.
//
// ready:    entities by when they may be taken, in milliseconds of the server's clock
// busy:     entities by when their worker is given up
// owners:   entity -> who works on it
// attempts: entity -> failures of its first operation
// aside:    entity -> its last error
// ids:      the last id that was given, and the format of all of these. Stays when the queue is
// empty Every entity with an operation is in exactly one of ready, busy and aside. An operation is
// "<id> <payload>" in the entity's list.
inline constexpr std::int64_t kSerialFormat = 1;

struct SerialScripts {
  Script push, take, renew, done, failed, resolve, count;
  static const SerialScripts& all();
};

}  // namespace leasehold::redis
