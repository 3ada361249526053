// Calls that ride together: while a proposal is on its way, transactions gather, and the next one
// takes them all. The cluster agrees on them, stores and answers them as one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/mode.h"
#include "leasehold/name.h"
#include "transport.h"
#include "wire.pb.h"

namespace leasehold::etcd {

// What a ride goes by: the cluster and its time, or a test's.
class Road {
 public:
  virtual ~Road() = default;
  virtual void send(wire::TxnRequest request, Limits limits, Done<wire::TxnResponse> done) = 0;
  virtual BootTime now() const = 0;
  // Calls it once, then or soon after, never on this thread. Replaces what was asked for before.
  virtual void call_at(BootTime when, std::function<void()> what) = 0;
  // What was asked for does not begin any more, but may have begun.
  virtual void call_off() = 0;
};

// Thread safe; nothing blocks, except close(). A call alone goes at once, those behind it wait for
// its answer. Each call has its own deadline and stop token, and is told what became of its own
// transaction.
class Ride final : public std::enable_shared_from_this<Ride> {
 public:
  // Nobody waits longer than that for what is on its way.
  static constexpr Millis kPatience{50};

  explicit Ride(std::unique_ptr<Road> road) : road_(std::move(road)) {}

  // A transaction about this lock, and no other. By itself goes what only reads, because that is no
  // proposal, and what may be sent twice.
  void go(const LockName& lock, Mode mode, wire::TxnRequest txn, Limits limits,
          Done<wire::TxnResponse> done);

  // Later calls are answered at once. When it returns, so is who had not left, and nothing runs
  // here by itself any more: the rest comes from the road, which is to be closed next. Not on a
  // thread that a completion is called on.
  void close();

 private:
  class Running;
  struct Rider;
  struct Batch;
  using RiderPointer = std::shared_ptr<Rider>;
  using BatchPointer = std::shared_ptr<Batch>;
  using Answer = tl::expected<wire::TxnResponse, Failure>;
  using Line = std::list<RiderPointer>;
  using TripNumber = std::uint64_t;
  struct Trip {
    TripNumber number;
    BootTime left;
  };

  void go_alone(TripNumber trip, wire::TxnRequest txn, Limits limits, Done<wire::TxnResponse> done);
  void gather(const RiderPointer& rider);
  void send(const std::vector<BatchPointer>& batches);
  BatchPointer next_to_send();
  void send(const BatchPointer& batch);
  void came_back(const BatchPointer& batch, Answer answer);
  void tell_each(const Batch& batch, Answer& answer);
  void tell(Rider& rider, Answer answer);
  void look();
  void stop_empty_ones();

  std::optional<TripNumber> leave_at_once();
  TripNumber begin_trip() LEASEHOLD_REQUIRES(mutex_);
  BatchPointer begin_batch() LEASEHOLD_REQUIRES(mutex_);
  std::vector<BatchPointer> back(TripNumber trip) LEASEHOLD_REQUIRES(mutex_);
  void learn(const Answer& answer, bool puts, bool shared) LEASEHOLD_REQUIRES(mutex_);
  std::vector<BatchPointer> depart() LEASEHOLD_REQUIRES(mutex_);
  std::vector<BatchPointer> each_alone(const Batch& batch) LEASEHOLD_REQUIRES(mutex_);
  std::vector<RiderPointer> take_gathered() LEASEHOLD_REQUIRES(mutex_);
  void wake_at(BootTime when) LEASEHOLD_REQUIRES(mutex_);
  BootTime due() const LEASEHOLD_REQUIRES(mutex_);
  static RiderPointer first_of(Line& line);

  const std::unique_ptr<Road> road_;
  Mutex mutex_;
  ConditionVariable at_rest_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  int running_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  TripNumber last_trip_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::optional<Trip> trip_ LEASEHOLD_GUARDED_BY(mutex_);  // the one that others wait for
  // Who has gathered, a line for each lock; and those locks, by who is next.
  std::unordered_map<std::string, Line> lines_ LEASEHOLD_GUARDED_BY(mutex_);
  std::deque<std::string> turns_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<BatchPointer> on_their_way_ LEASEHOLD_GUARDED_BY(mutex_);
  std::deque<BatchPointer> to_send_ LEASEHOLD_GUARDED_BY(mutex_);
  bool sending_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  BootTime wakes_at_ LEASEHOLD_GUARDED_BY(mutex_) = BootTime::max();
  int most_operations_ LEASEHOLD_GUARDED_BY(mutex_) = 128;  // etcd's usual limit
  bool server_is_full_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

}  // namespace leasehold::etcd
