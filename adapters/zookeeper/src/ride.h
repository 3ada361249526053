// Requests that ride together: while a few are on their way, those of a session that come meanwhile
// gather, and the next transaction takes them all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connection.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/time.h"

namespace leasehold::zookeeper {

// What a ride goes by: a session's connection and the time, or a test's.
class Road {
 public:
  virtual ~Road() = default;
  virtual void create(const std::string& path, const std::string& data,
                      Connection::Created done) = 0;
  virtual void remove(const std::string& path, Connection::Replied done) = 0;
  virtual void transact(std::vector<Step> steps, Connection::Transacted done) = 0;
  virtual void exists(const std::string& path, Connection::Read done) = 0;
  virtual BootTime now() const = 0;
  // Calls it once, on another thread, or never if the road is closed before.
  virtual void call_at(BootTime when, std::function<void()> what) = 0;
};

// Thread safe; nothing blocks. The first few go at once, each by itself. Each is told what became
// of its own node, by a reply as it would have had alone.
class Ride final : public std::enable_shared_from_this<Ride> {
 public:
  // Nobody waits longer than that for what is on its way.
  static constexpr Millis kPatience{50};
  // The server syncs what comes one after the other together, so that these need not wait.
  static constexpr int kAtOnce = 4;
  // In one transaction; the server takes a megabyte by default.
  static constexpr std::size_t kMostRiders = 100;
  static constexpr std::size_t kMostBytes = 256 * 1024;

  explicit Ride(std::unique_ptr<Road> road, int at_once = kAtOnce)
      : road_(std::move(road)), at_once_(at_once) {}

  // An ephemeral node that the server gives a number. `wanted` is asked when it leaves: if not, it
  // is not made, and told kNotSent. `sent` is called, perhaps again, when it is on its way: what is
  // sent there comes back after `done`, and is for nothing if the node was not made yet.
  struct Node {
    std::string folder;
    std::string path;
    std::string data;
    std::function<bool()> wanted;
  };
  void create(Node node, Connection::Created done, std::function<void()> sent);
  void remove(std::string path, Connection::Replied done);

  // Who has not left is told kClosing, and so is who comes later, by the road.
  void close();

 private:
  struct Rider;
  struct Batch;
  using Riders = std::vector<std::shared_ptr<Rider>>;
  using TripNumber = std::uint64_t;
  // One transaction, or some that went by themselves.
  struct Trip {
    TripNumber number;
    BootTime left;  // the last of them
    int out;
    bool together;
  };

  void go(std::shared_ptr<Rider> rider) LEASEHOLD_EXCLUDES(mutex_);
  void back(TripNumber trip) LEASEHOLD_EXCLUDES(mutex_);
  void look() LEASEHOLD_EXCLUDES(mutex_);
  Batch depart() LEASEHOLD_REQUIRES(mutex_);
  void watch_the_time() LEASEHOLD_REQUIRES(mutex_);
  bool is_late() const LEASEHOLD_REQUIRES(mutex_);
  bool takes_one_more() const LEASEHOLD_REQUIRES(mutex_);

  void send(Batch batch);
  void send_alone(const std::shared_ptr<Rider>& rider, std::optional<TripNumber> trip);
  void send_together(const std::shared_ptr<Riders>& riders, TripNumber trip);
  void came_back(const Riders& riders, int rc, const std::vector<Stepped>& each, TripNumber trip);
  static std::shared_ptr<Riders> made_of(const Riders& riders, const std::vector<Stepped>& each);
  void find_number(const std::shared_ptr<Riders>& made, std::size_t by);

  const std::unique_ptr<Road> road_;
  const int at_once_;
  Mutex mutex_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  bool will_look_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  TripNumber last_trip_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::optional<Trip> trip_ LEASEHOLD_GUARDED_BY(mutex_);  // what others wait for
  Riders gathered_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::zookeeper
