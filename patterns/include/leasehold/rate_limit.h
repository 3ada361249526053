// At most so many per interval, by all programs together.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "leasehold/client.h"

namespace leasehold {

namespace detail {
class KeptTurns;
}  // namespace detail

struct Rate {
  std::int64_t count = 1;  // 1 to Mode::kMostPermits
  Millis interval{1000};   // 100 ms to 24 h
};

// Efficiency: a turn may be long on its way from the store to what it is for, so that more of them
// than `count` may arrive within an interval.
//
// Where the store cannot keep a permit that nobody holds (ZooKeeper), this object and its copies
// keep the turns they took, with one thread from the first one on. When the last of them goes, or
// its process dies, its turns are over early. So make one, and keep it as long as the program runs.
//
// Thread safe; a cheap handle, as Client is. Not for a forked child.
class RateLimit {
 public:
  // Asks the store for nothing yet. `invalid`: the name, the count or the interval. `unsupported`:
  // the store has no permits.
  [[nodiscard]] static Result<RateLimit> of(Client client, std::string_view lock, Rate rate);

  // Returns when it is the caller's turn. In no span of `interval` does the store give out more
  // than `count` turns, to all who use this lock with this rate; also if one who had a turn dies,
  // where the store keeps it. First come, first served. A failure may have used up a turn.
  //
  // Blocks and fails as Client::acquire() does: `busy` if options.wait is zero and there is no turn
  // now, else `timeout` if there was none in time. options.ttl and options.mode are not looked at.
  [[nodiscard]] Status take_turn(AcquireOptions options = {});

 private:
  RateLimit(Client client, LockName lock, Rate rate);
  Client client_;
  LockName lock_;
  Rate rate_;
  std::shared_ptr<detail::KeptTurns> kept_;
};

}  // namespace leasehold
