// Where calls gather while a batch of them is on its way.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "kit/threads/doorbell.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"
#include "leasehold/time.h"

namespace leasehold {

// A call that may ride with others. Its caller sleeps meanwhile, and goes away when its time is
// over or it is stopped; so caller and batch agree in one word on how far the call has come.
class Rider {
 public:
  explicit Rider(CallContext limits) : context(std::move(limits)) {}
  virtual ~Rider() = default;
  Rider(const Rider&) = delete;

  const CallContext context;

  // For the batch, before anything of this call is done. False: its caller has gone or wants it no
  // more, and it must not be done. What a later call of that caller must be able to count on is
  // settled before: the number of a call to Redis, for instance, than which its release's is
  // higher.
  bool begin() { return !is_over() && move(Stage::gathered, Stage::begun); }
  bool has_begun() const { return stage_ == Stage::begun; }

  // For the batch: it has its answer, or it was not done and goes on its own; only the first of
  // these counts. The caller goes on when the batch is over, or at wake().
  void answered() { end(Stage::answered); }
  void left_behind() { end(Stage::left_behind); }
  // Wakes those of its batch that need not wait any more, before the batch is over.
  void wake() {
    if (gong_) gong_->strike();
  }

  // True if whoever wakes one wakes the other, too.
  bool sleeps_beside(const Rider& other) const { return gong_ == other.gong_; }

  // Its caller wants it no more.
  bool is_over() const {
    return context.stop.stop_requested() || BootClock::now() >= context.deadline;
  }

 private:
  friend class Line;
  enum class Stage { gathered, begun, answered, left_behind, gone };

  bool move(Stage from, Stage to) { return stage_.compare_exchange_strong(from, to); }
  void end(Stage how) { (void)(move(Stage::begun, how) || move(Stage::gathered, how)); }
  bool is_open() const { return stage_ == Stage::gathered || stage_ == Stage::begun; }

  std::atomic<Stage> stage_ = Stage::gathered;
  std::shared_ptr<kit::Gong> gong_;  // struck when its batch is over
};

// The first call goes at once, on its caller's thread. While it is on its way others gather; when
// it is back, a thread of the line takes all of them along together, and so on until nobody waits.
// Where a batch can be under way by itself, the next one departs before it has come back, if enough
// have gathered, or one that is urgent. Nobody waits long: when a batch has been out for its
// patience, a call goes on its own. Thread safe.
class Line {
 public:
  using Batch = std::vector<std::shared_ptr<Rider>>;
  // A batch that is under way.
  class Trip {
   public:
    virtual ~Trip() = default;
    // Waits for what is outstanding, and ends each call. Another may have departed behind it, which
    // arrives after it. Must not throw.
    virtual void arrive() = 0;
    // False: the next one departs when it has arrived.
    virtual bool can_be_followed() const { return true; }
  };
  // Does the calls of a batch that begin(), and ends each; or only sends them, and answers the
  // trip, which does the rest. When all that is over their callers are woken. All by one thread at
  // a time, beside calls that go on their own. Must not throw.
  using Depart = std::function<std::unique_ptr<Trip>(const Batch&)>;

  static constexpr std::size_t kMostRiders = 100;
  // So many depart behind a batch that is under way: one of fewer would cost as much.
  static constexpr std::size_t kEnoughRiders = 8;
  static constexpr Millis kPatience{50};

  explicit Line(Depart depart, Millis patience = kPatience)
      : depart_(std::move(depart)), patience_(patience) {}
  ~Line() { close(); }
  Line(const Line&) = delete;

  // True if nothing is on its way: the call goes first, and back() follows when it has come back.
  bool go_first(BootTime now) LEASEHOLD_EXCLUDES(mutex_);
  void back() LEASEHOLD_EXCLUDES(mutex_);
  class First {
   public:
    explicit First(Line& line) : line_(line) {}
    ~First() { line_.back(); }
    First(const First&) = delete;

   private:
    Line& line_;
  };

  enum class Ride {
    answered,
    on_its_own,   // it was not done: the caller may do it now, alone
    not_begun,    // the caller's time was over, or its stop came, and it will not be done
    not_finished  // the same, and it may have been done, or may still be
  };
  // Blocks until one of these is known. With the last the batch still uses the rider.
  Ride ride(const std::shared_ptr<Rider>& rider, BootTime now) LEASEHOLD_EXCLUDES(mutex_);

  // How many have come for the next batch, and perhaps gone.
  std::size_t gathered() LEASEHOLD_EXCLUDES(mutex_);

  // When no call waits or comes any more.
  void close() LEASEHOLD_EXCLUDES(mutex_);

 private:
  // Until when it waits for its batch to begin; nothing: it goes on its own at once.
  std::optional<BootTime> gather(const std::shared_ptr<Rider>& rider, BootTime now)
      LEASEHOLD_EXCLUDES(mutex_);
  bool has_thread() LEASEHOLD_REQUIRES(mutex_);
  void run() LEASEHOLD_EXCLUDES(mutex_);
  // False: there is none, and will be none.
  bool await_batch(Batch& batch) LEASEHOLD_EXCLUDES(mutex_);
  // False: there is none now that is worth it.
  bool next_batch(Batch& batch) LEASEHOLD_EXCLUDES(mutex_);
  void take(Batch& batch) LEASEHOLD_REQUIRES(mutex_);
  void out_since(BootTime when) LEASEHOLD_EXCLUDES(mutex_);

  const Depart depart_;
  const Millis patience_;
  Mutex mutex_;
  ConditionVariable handed_over_;
  // Of what has been out longest; nothing: nothing is out.
  std::optional<BootTime> out_since_ LEASEHOLD_GUARDED_BY(mutex_);
  bool to_carry_ LEASEHOLD_GUARDED_BY(mutex_) = false;  // the thread is to take who has gathered
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  Batch gathered_ LEASEHOLD_GUARDED_BY(mutex_);
  std::shared_ptr<kit::Gong> gong_ LEASEHOLD_GUARDED_BY(mutex_);  // of who gathered last
  std::thread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold
