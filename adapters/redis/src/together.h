// How the batches of one client go to the server.
#pragma once

#include <memory>
#include <span>

#include "composer.h"
#include "convoy.h"
#include "server.h"
#include "store_base/blocking_store.h"

namespace leasehold::redis {

// For one thread at a time, which also calls arrive() of the trips, in the order of departure.
class Together {
 public:
  Together(Server& server, Composer& composer) : server_(server), composer_(composer) {}

  // See BlockingStore::depart(); as long as the trip before it is under way, only if that can be
  // followed. If the server has forgotten a script, what it was for is not done,
  // and the next batch brings all of them along.
  std::unique_ptr<Line::Trip> depart(std::span<const AnyAsked> batch);

 private:
  class Trip;

  Server& server_;
  Composer& composer_;
  std::weak_ptr<Convoy> convoy_;  // of the batch before, if that is still under way
  bool in_full_ = false;
};

}  // namespace leasehold::redis
