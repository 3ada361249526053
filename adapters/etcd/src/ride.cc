#include "ride.h"

#include <algorithm>
#include <utility>

#include "joined_txn.h"
#include "transactions.h"

namespace leasehold::etcd {
namespace {

// A server may be set to take less than is usual, but takes at least one call's.
constexpr int kFewestOperations = 16;
// Well below what a server usually takes in one request, 1.5 MB.
constexpr std::size_t kMostBytes = 512 * 1024;

tl::unexpected<Failure> was_closed() {
  return tl::unexpected(Failure{.kind = Failure::Kind::closed});
}

}  // namespace

// ---- who rides -----------------------------------------------------------------------------

struct Ride::Rider {
  enum class Place { gathered, on_its_way, answered };

  Rider(const LockName& lock_in, Mode mode_in, const wire::TxnRequest& txn, Limits limits_in,
        Done<wire::TxnResponse> done_in, BootTime answer_by_in)
      : lock(lock_in),
        mode(mode_in),
        packed(txn.SerializeAsString()),
        limits(std::move(limits_in)),
        done(std::move(done_in)),
        answer_by(answer_by_in),
        puts(puts_something(txn)),
        operations(operations_in(txn)) {}

  LockName lock;
  Mode mode;
  std::string packed;  // thousands may wait, and a message takes five times as much memory
  Limits limits;
  Done<wire::TxnResponse> done;
  BootTime answer_by;
  bool puts;
  int operations;
  Place place = Place::gathered;  // guarded by the ride's mutex
  std::optional<std::stop_callback<std::function<void()>>> on_stop = {};

  bool wants_out() const { return limits.stop.stop_requested(); }
  wire::TxnRequest txn() const {
    wire::TxnRequest unpacked;
    unpacked.ParseFromString(packed);
    return unpacked;
  }
};

struct Ride::Batch {
  std::vector<RiderPointer> riders;
  std::optional<TripNumber> trip;  // none: nobody waits for it
  std::stop_source all_left = {};
  int operations = 0;  // the most that one of them has
  std::size_t bytes = 0;

  bool has_room_for(const Rider& rider, int most_operations) const {
    const int each = static_cast<int>(riders.size()) + 1;
    return riders.empty() || (each + std::max(operations, rider.operations) <= most_operations &&
                              bytes + rider.packed.size() <= kMostBytes);
  }
  void add(RiderPointer rider) {
    operations = std::max(operations, rider->operations);
    bytes += rider->packed.size();
    rider->place = Rider::Place::on_its_way;
    riders.push_back(std::move(rider));
  }
  bool is_shared() const { return riders.size() > 1; }
  bool puts() const {
    return std::any_of(riders.begin(), riders.end(), [](const auto& it) { return it->puts; });
  }
  bool is_empty() const {
    return std::all_of(riders.begin(), riders.end(),
                       [](const auto& it) { return it->place == Rider::Place::answered; });
  }
  BootTime deadline() const {
    BootTime last = BootTime::min();
    for (const RiderPointer& it : riders) last = std::max(last, it->limits.deadline);
    return last;
  }
};

// ---- closing -------------------------------------------------------------------------------

// What close() waits for: it may send, and tell riders, on a thread that no call of the road knows.
class Ride::Running {
 public:
  explicit Running(Ride& ride) : ride_(ride) {
    MutexLock guard(ride_.mutex_);
    may_ = !ride_.closed_;
    if (may_) ++ride_.running_;
  }
  ~Running() {
    if (!may_) return;
    MutexLock guard(ride_.mutex_);
    if (--ride_.running_ == 0) ride_.at_rest_.notify_all();
  }
  Running(const Running&) = delete;

  // Not when the ride is closed.
  bool may() const { return may_; }

 private:
  Ride& ride_;
  bool may_;
};

void Ride::close() {
  std::vector<RiderPointer> gathered;
  {
    MutexLock guard(mutex_);
    closed_ = true;
    road_->call_off();
    at_rest_.wait(mutex_, [this]() LEASEHOLD_REQUIRES(mutex_) { return running_ == 0; });
    gathered = take_gathered();
  }
  for (const RiderPointer& it : gathered) tell(*it, was_closed());
}

std::vector<Ride::RiderPointer> Ride::take_gathered() {
  std::vector<RiderPointer> all;
  for (auto& [lock, line] : lines_) all.insert(all.end(), line.begin(), line.end());
  lines_.clear();
  turns_.clear();
  return all;
}

// ---- going ---------------------------------------------------------------------------------

void Ride::go(const LockName& lock, Mode mode, wire::TxnRequest txn, Limits limits,
              Done<wire::TxnResponse> done) {
  const Running running(*this);
  if (!running.may()) return done(was_closed());
  if (limits.repeat || !changes_something(txn)) {
    return road_->send(std::move(txn), std::move(limits), std::move(done));
  }
  if (const auto trip = leave_at_once()) {
    return go_alone(*trip, std::move(txn), std::move(limits), std::move(done));
  }
  // Later than the transport's own failure, which says more.
  const BootTime answer_by = limits.deadline - early_by(limits.deadline - road_->now()) / 2;
  gather(std::make_shared<Rider>(lock, mode, txn, std::move(limits), std::move(done), answer_by));
}

std::optional<Ride::TripNumber> Ride::leave_at_once() {
  MutexLock guard(mutex_);
  if (trip_) return std::nullopt;
  return begin_trip();
}

Ride::TripNumber Ride::begin_trip() {
  trip_ = Trip{++last_trip_, road_->now()};
  return last_trip_;
}

void Ride::go_alone(TripNumber trip, wire::TxnRequest txn, Limits limits,
                    Done<wire::TxnResponse> done) {
  const bool puts = puts_something(txn);
  road_->send(std::move(txn), std::move(limits),
              [self = shared_from_this(), trip, puts, done = std::move(done)](Answer answer) {
                std::vector<BatchPointer> next;
                {
                  MutexLock guard(self->mutex_);
                  self->learn(answer, puts, /*shared=*/false);
                  next = self->back(trip);
                }
                self->send(next);
                done(std::move(answer));
              });
}

void Ride::gather(const RiderPointer& rider) {
  if (rider->limits.stop.stop_possible()) {
    rider->on_stop.emplace(rider->limits.stop, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      MutexLock guard(self->mutex_);
      self->wake_at(self->road_->now());
    });
  }
  std::vector<BatchPointer> next;
  {
    MutexLock guard(mutex_);
    auto& line = lines_[rider->lock.str()];
    if (line.empty()) turns_.push_back(rider->lock.str());
    line.push_back(rider);
    next = depart();  // what it was to wait for may be back
    if (rider->wants_out()) wake_at(road_->now());
    wake_at(rider->answer_by);
    if (!turns_.empty()) wake_at(trip_->left + kPatience);
  }
  send(next);
}

// ---- departing -----------------------------------------------------------------------------

std::vector<Ride::BatchPointer> Ride::back(TripNumber trip) {
  if (trip_ && trip_->number == trip) trip_.reset();
  return depart();
}

void Ride::learn(const Answer& answer, bool puts, bool shared) {
  if (answer) {
    if (puts) server_is_full_ = false;
  } else if (answer.error().out_of_space()) {
    server_is_full_ = true;
  } else if (answer.error().is_the_callers() && shared) {
    most_operations_ = std::max(most_operations_ / 2, kFewestOperations);
  }
}

// The first in the line of each lock. Never two of one lock: the server evaluates all conditions
// before it does anything, and would grant both. The second goes with the next batch, mostly after
// the first was answered. Not so behind one that hangs, and beside what is repeated for each alone:
// then either may come first. They are in different transactions then, and the later one finds what
// the other did. Those who can stand beside each other need no order, and go at once.
std::vector<Ride::BatchPointer> Ride::depart() {
  if (trip_ || turns_.empty()) return {};
  const BatchPointer batch = begin_batch();
  batch->trip = begin_trip();
  std::vector<BatchPointer> departing = {batch};
  for (std::size_t turns = turns_.size(); turns > 0; --turns) {
    Line& line = lines_.find(turns_.front())->second;
    // A full server refuses the whole if there is a put in it, and lets a key go otherwise.
    const bool apart =
        server_is_full_ && !batch->riders.empty() && batch->puts() != line.front()->puts;
    if (apart || !batch->has_room_for(*line.front(), most_operations_)) break;
    const bool in_order = line.front()->mode.is_exclusive();
    batch->add(first_of(line));
    while (!in_order && !line.empty() && !line.front()->mode.is_exclusive()) {
      departing.push_back(begin_batch());
      departing.back()->add(first_of(line));
    }
    std::string lock = std::move(turns_.front());
    turns_.pop_front();
    if (line.empty()) {
      lines_.erase(lock);
    } else {
      turns_.push_back(std::move(lock));
    }
  }
  return departing;
}

Ride::RiderPointer Ride::first_of(Line& line) {
  RiderPointer rider = std::move(line.front());
  line.pop_front();
  return rider;
}

Ride::BatchPointer Ride::begin_batch() {
  on_their_way_.push_back(std::make_shared<Batch>());
  return on_their_way_.back();
}

// The road may answer before it returns, for instance what has no time left. Thousands of those may
// stand behind each other, so what departs then is sent from here, and not from within.
void Ride::send(const std::vector<BatchPointer>& batches) {
  {
    MutexLock guard(mutex_);
    to_send_.insert(to_send_.end(), batches.begin(), batches.end());
    if (sending_ || to_send_.empty()) return;
    sending_ = true;
  }
  while (const BatchPointer batch = next_to_send()) send(batch);
}

Ride::BatchPointer Ride::next_to_send() {
  MutexLock guard(mutex_);
  sending_ = !to_send_.empty();
  if (!sending_) return nullptr;
  BatchPointer next = std::move(to_send_.front());
  to_send_.pop_front();
  return next;
}

void Ride::send(const BatchPointer& batch) {
  JoinedTxn joined;
  if (batch->is_shared()) {
    for (const RiderPointer& it : batch->riders) joined.add(it->txn());
  }
  road_->send(batch->is_shared() ? joined.take() : batch->riders.front()->txn(),
              {.deadline = batch->deadline(), .stop = batch->all_left.get_token()},
              [self = shared_from_this(), batch](Answer answer) {
                self->came_back(batch, std::move(answer));
              });
}

// ---- coming back ---------------------------------------------------------------------------

namespace {

// Of several: for what one of them wants, perhaps. None of it was done.
bool may_be_anothers(const Failure& failure) {
  return failure.kind == Failure::Kind::refused && !failure.out_of_space() &&
         !failure.token_is_refused();
}

}  // namespace

void Ride::came_back(const BatchPointer& batch, Answer answer) {
  const bool each_again = batch->is_shared() && !answer && may_be_anothers(answer.error());
  std::vector<BatchPointer> next;
  {
    MutexLock guard(mutex_);
    std::erase(on_their_way_, batch);
    learn(answer, batch->puts(), batch->is_shared());
    if (each_again) next = each_alone(*batch);
    if (batch->trip) {
      for (BatchPointer& it : back(*batch->trip)) next.push_back(std::move(it));
    }
  }
  send(next);
  if (!each_again) tell_each(*batch, answer);
}

std::vector<Ride::BatchPointer> Ride::each_alone(const Batch& batch) {
  std::vector<BatchPointer> alone;
  for (const RiderPointer& it : batch.riders) {
    if (it->place == Rider::Place::answered) continue;
    alone.push_back(begin_batch());
    alone.back()->add(it);
  }
  return alone;
}

void Ride::tell_each(const Batch& batch, Answer& answer) {
  const int count = static_cast<int>(batch.riders.size());
  for (int i = 0; i < count; ++i) {
    Rider& rider = *batch.riders[static_cast<std::size_t>(i)];
    if (batch.is_shared() && answer) {
      tell(rider, take_answer_to(rider.txn(), i, *answer));
    } else if (batch.is_shared() && answer.error().out_of_space() && !rider.puts) {
      // Alone it would have been done, and it may have been.
      Failure failure = answer.error();
      failure.kind = Failure::Kind::ambiguous;
      tell(rider, tl::unexpected(std::move(failure)));
    } else {
      tell(rider, answer);
    }
  }
}

void Ride::tell(Rider& rider, Answer answer) {
  {
    MutexLock guard(mutex_);
    if (std::exchange(rider.place, Rider::Place::answered) == Rider::Place::answered) return;
  }
  rider.on_stop.reset();
  rider.done(std::move(answer));
}

// ---- leaving before that -------------------------------------------------------------------

namespace {

Failure never_left(bool stopped) {
  if (stopped) return {.kind = Failure::Kind::stopped};
  return {.kind = Failure::Kind::not_sent, .silence = true, .words = "no time was left"};
}

Failure left_on_the_way(bool stopped) {
  return {.kind = Failure::Kind::ambiguous,
          .silence = !stopped,
          .words = stopped ? "it was stopped" : "no answer came in time"};
}

}  // namespace

void Ride::look() {
  const Running running(*this);
  if (!running.may()) return;
  const BootTime now = road_->now();
  std::vector<std::pair<RiderPointer, Failure>> leaving;
  std::vector<BatchPointer> next;
  {
    MutexLock guard(mutex_);
    wakes_at_ = BootTime::max();
    const auto leaves = [now](const RiderPointer& it) {
      return it->place != Rider::Place::answered && (it->wants_out() || it->answer_by <= now);
    };
    for (const BatchPointer& batch : on_their_way_) {
      for (const RiderPointer& it : batch->riders) {
        if (leaves(it)) leaving.emplace_back(it, left_on_the_way(it->wants_out()));
      }
    }
    for (auto& [lock, line] : lines_) {
      std::erase_if(line, [&](const RiderPointer& it) {
        if (!leaves(it)) return false;
        leaving.emplace_back(it, never_left(it->wants_out()));
        return true;
      });
    }
    std::erase_if(turns_, [this](const std::string& lock)
                              LEASEHOLD_REQUIRES(mutex_) { return lines_.at(lock).empty(); });
    std::erase_if(lines_, [](const auto& it) { return it.second.empty(); });
    if (trip_ && trip_->left + kPatience <= now) trip_.reset();
    next = depart();
  }
  send(next);
  for (auto& [rider, failure] : leaving) tell(*rider, tl::unexpected(std::move(failure)));
  stop_empty_ones();
  MutexLock guard(mutex_);
  wake_at(due());
}

// Nobody listens any more.
void Ride::stop_empty_ones() {
  std::vector<BatchPointer> empty;
  {
    MutexLock guard(mutex_);
    for (const BatchPointer& it : on_their_way_) {
      if (it->is_empty()) empty.push_back(it);
    }
  }
  for (const BatchPointer& it : empty) it->all_left.request_stop();
}

BootTime Ride::due() const {
  BootTime due = BootTime::max();
  for (const BatchPointer& batch : on_their_way_) {
    for (const RiderPointer& it : batch->riders) {
      if (it->place != Rider::Place::answered) due = std::min(due, it->answer_by);
    }
  }
  for (const auto& [lock, line] : lines_) {
    for (const RiderPointer& it : line) due = std::min(due, it->answer_by);
  }
  return turns_.empty() ? due : std::min(due, trip_->left + kPatience);
}

void Ride::wake_at(BootTime when) {
  if (closed_ || when >= wakes_at_) return;
  wakes_at_ = when;
  road_->call_at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
}

}  // namespace leasehold::etcd
