// Until when a session lasts for certain, by what has been answered.
#pragma once

#include <deque>

#include "leasehold/time.h"
#include "leasehold/ttl.h"

namespace leasehold::zookeeper {

// A follower hands the signs of life of its clients on to the leader with its pings, every half
// tick. So the leader knows of what a server has answered within that time. Half a tick is at most
// a quarter of a session, since the server gives none below two ticks, and one second at the
// default of two.
Millis handed_on_within(Millis session);

// How often a sign of life is sent.
Millis heartbeat_of(Millis session);

// How long a session must be for a grant in it to last `ttl`, and the other way round: half a tick
// less, and two heartbeats, one of which may be late.
Millis session_for(Ttl ttl);
Millis certain_part_of(Millis session);

// How long a node outlives its holder at most: whatever the last sign of life was, the server ends
// sessions only at whole ticks.
Millis most_left(Millis session);

// Not thread safe. Times are of this client's clock, and those of `sent` from before the sending.
class SignsOfLife {
 public:
  // The leader and its majority have opened the session.
  void opened(BootTime sent, Millis session);
  // A server has answered just now; what it knows from itself may be all that it knows.
  void answered(BootTime sent, BootTime now);
  // A transaction has been answered just now: the server was no stranger to the leader, nor the
  // leader to its majority. So the leader knew of what had been handed on before.
  void confirmed(BootTime sent, BootTime now);

  // The session does not end before, unless somebody ends it.
  BootTime certain_until() const { return last_ + session_; }

 private:
  struct Sign {
    BootTime sent;
    BootTime known;  // to the leader, if the server can reach it
  };

  Millis session_{0};
  BootTime last_;           // the leader certainly knows of a sign of life from then
  std::deque<Sign> signs_;  // oldest first; not yet known to be known, but for the first one
};

}  // namespace leasehold::zookeeper
