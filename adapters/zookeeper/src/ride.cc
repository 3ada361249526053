#include "ride.h"

#include <unordered_set>
#include <utility>

namespace leasehold::zookeeper {

struct Ride::Rider {
  std::string path;
  // Of a node that is to be made:
  std::string folder = {};
  std::string data = {};
  std::function<bool()> wanted = {};
  Connection::Created created = {};
  std::function<void()> sent = {};
  // Of one that is to be removed:
  Connection::Replied removed = {};

  bool makes() const { return created != nullptr; }
  std::size_t bytes() const { return path.size() + data.size() + 64; }
  Step step() const {
    if (makes()) return {Step::Kind::create_numbered, path, data};
    return {Step::Kind::remove, path};
  }
  void tell(int rc, const std::string& made = {}, const NodeStat& stat = {}) {
    if (makes()) return created(rc, made, stat);
    removed(rc);
  }
};

// `alone` goes right behind those who ride.
struct Ride::Batch {
  TripNumber trip = 0;
  Riders together = {};
  Riders alone = {};
  Riders unwanted = {};
};

void Ride::create(Node node, Connection::Created done, std::function<void()> sent) {
  go(std::make_shared<Rider>(Rider{.path = std::move(node.path),
                                   .folder = std::move(node.folder),
                                   .data = std::move(node.data),
                                   .wanted = std::move(node.wanted),
                                   .created = std::move(done),
                                   .sent = std::move(sent)}));
}

void Ride::remove(std::string path, Connection::Replied done) {
  go(std::make_shared<Rider>(Rider{.path = std::move(path), .removed = std::move(done)}));
}

void Ride::close() {
  Riders gathered;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    gathered.swap(gathered_);
  }
  for (const auto& it : gathered) it->tell(kClosing);
}

// ---- departing ------------------------------------------------------------------------------

void Ride::go(std::shared_ptr<Rider> rider) {
  Batch batch;
  {
    MutexLock lock(mutex_);
    if (closed_) {
      batch.alone.push_back(std::move(rider));
    } else {
      gathered_.push_back(std::move(rider));
      batch = depart();
      if (!gathered_.empty()) watch_the_time();
    }
  }
  send(std::move(batch));
}

void Ride::back(TripNumber trip) {
  Batch batch;
  {
    MutexLock lock(mutex_);
    if (trip_ && trip_->number == trip && --trip_->out == 0) trip_.reset();
    batch = depart();
  }
  send(std::move(batch));
}

bool Ride::is_late() const {
  return trip_ && road_->now() >= trip_->left + kPatience;
}

bool Ride::takes_one_more() const {
  return !trip_->together && trip_->out < at_once_ && gathered_.size() == 1;
}

void Ride::watch_the_time() {
  if (std::exchange(will_look_, true)) return;
  road_->call_at(trip_->left + kPatience, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
}

void Ride::look() {
  Batch batch;
  {
    MutexLock lock(mutex_);
    will_look_ = false;
    if (!gathered_.empty()) batch = depart();
    if (!gathered_.empty()) watch_the_time();
  }
  send(std::move(batch));
}

// Two nodes of one lock that are made in one transaction would have the same token.
Ride::Batch Ride::depart() {
  Batch batch;
  if (gathered_.empty()) return batch;
  if (is_late()) trip_.reset();
  if (trip_ && !takes_one_more()) return batch;
  std::unordered_set<std::string_view> folders;
  std::size_t bytes = 0;
  auto it = gathered_.begin();
  for (; it != gathered_.end() && batch.together.size() < kMostRiders && bytes < kMostBytes; ++it) {
    Rider& rider = **it;
    if (rider.makes() && !rider.wanted()) {
      batch.unwanted.push_back(std::move(*it));
    } else if (rider.makes() && !folders.insert(rider.folder).second) {
      batch.alone.push_back(std::move(*it));
    } else {
      bytes += rider.bytes();
      batch.together.push_back(std::move(*it));
    }
  }
  gathered_.erase(gathered_.begin(), it);
  if (batch.together.empty()) return batch;
  if (!trip_) trip_ = Trip{++last_trip_, {}, 0, batch.together.size() > 1};
  trip_->left = road_->now();
  ++trip_->out;
  batch.trip = trip_->number;
  return batch;
}

void Ride::send(Batch batch) {
  if (batch.together.size() == 1) {
    send_alone(batch.together.front(), batch.trip);
  } else if (!batch.together.empty()) {
    send_together(std::make_shared<Riders>(std::move(batch.together)), batch.trip);
  }
  for (const auto& it : batch.alone) send_alone(it, std::nullopt);
  for (const auto& it : batch.unwanted) it->tell(kNotSent);
}

void Ride::send_alone(const std::shared_ptr<Rider>& rider, std::optional<TripNumber> trip) {
  if (!rider->makes()) {
    return road_->remove(rider->path, [self = shared_from_this(), rider, trip](int rc) {
      if (trip) self->back(*trip);
      rider->tell(rc);
    });
  }
  road_->create(rider->path, rider->data,
                [self = shared_from_this(), rider, trip](int rc, const std::string& path,
                                                         const NodeStat& stat) {
                  if (trip) self->back(*trip);
                  rider->tell(rc, path, stat);
                });
  rider->sent();
}

void Ride::send_together(const std::shared_ptr<Riders>& riders, TripNumber trip) {
  std::vector<Step> steps;
  steps.reserve(riders->size());
  for (const auto& it : *riders) steps.push_back(it->step());
  road_->transact(std::move(steps), [self = shared_from_this(), riders, trip](
                                        int rc, const std::vector<Stepped>& each) {
    self->came_back(*riders, rc, each, trip);
  });
}

// ---- coming back ----------------------------------------------------------------------------

void Ride::came_back(const Riders& riders, int rc, const std::vector<Stepped>& each,
                     TripNumber trip) {
  switch (outcome_of(rc)) {
    case Outcome::done:
      // What is asked of the server here is answered before the next batch, which is synced.
      find_number(made_of(riders, each), 0);
      back(trip);
      for (const auto& it : riders) {
        if (!it->makes()) it->tell(rc);
      }
      return;
    case Outcome::lost:
    case Outcome::over:
      back(trip);
      for (const auto& it : riders) it->tell(rc);
      return;
    default:  // for what one of them wants; none of it was done
      for (const auto& it : riders) send_alone(it, std::nullopt);
      back(trip);
  }
}

std::shared_ptr<Ride::Riders> Ride::made_of(const Riders& riders,
                                            const std::vector<Stepped>& each) {
  auto made = std::make_shared<Riders>();
  for (std::size_t i = 0; i < riders.size(); ++i) {
    if (!riders[i]->makes()) continue;
    riders[i]->path = each[i].path;
    made->push_back(riders[i]);
  }
  return made;
}

// The library does not tell the number of a transaction, but each node that was made by it knows.
void Ride::find_number(const std::shared_ptr<Riders>& made, std::size_t by) {
  if (made->empty()) return;
  road_->exists((*made)[by]->path, [self = shared_from_this(), made, by](int rc, const std::string&,
                                                                         const NodeStat& stat) {
    const Outcome outcome = outcome_of(rc);
    const bool removed = outcome == Outcome::no_node;
    if (removed && by + 1 < made->size()) return self->find_number(made, by + 1);
    const bool known = removed || outcome == Outcome::done || outcome == Outcome::over;
    for (const auto& it : *made) it->tell(known ? rc : kLost, it->path, stat);
  });
  for (const auto& it : *made) it->sent();
}

}  // namespace leasehold::zookeeper
