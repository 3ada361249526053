// Connections that calls take, use alone, and give back.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/error.h"
#include "leasehold/store.h"

namespace leasehold::waiting {

// Whether a connection is looked at before it is used: the other side may have ended it. A call
// that is repeated anyway when it fails need not look, if the connection was used a moment ago.
enum class Look { always, if_rested };

// Thread safe. Connections are made when they are needed, up to `limit`, and kept for the next
// call; the one used last is used next, so that few are in use.
template <class Connection>
class ConnectionPool {
 public:
  using Make = std::function<Result<std::unique_ptr<Connection>>(const CallContext&)>;

  ConnectionPool(std::size_t limit, Make make) : limit_(limit), make_(std::move(make)) {}

  // A connection on loan. Given back by the destructor, unless it was discarded, or an exception
  // ends the call: then it may owe an answer, which the next call would take for its own.
  class [[nodiscard]] Loan {
   public:
    Loan(ConnectionPool& pool, std::unique_ptr<Connection> connection, bool rested)
        : pool_(&pool), connection_(std::move(connection)), rested_(rested) {}
    Loan(Loan&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          connection_(std::move(other.connection_)),
          rested_(other.rested_) {}
    ~Loan() {
      if (std::uncaught_exceptions() > exceptions_) discard();
      if (pool_ != nullptr) pool_->give_back(std::move(connection_));
    }

    Connection& operator*() { return *connection_; }
    Connection* operator->() { return connection_.get(); }
    // It is broken: it is not given back.
    void discard() { connection_.reset(); }
    bool needs(Look look) const { return look == Look::always || rested_; }

   private:
    ConnectionPool* pool_;
    std::unique_ptr<Connection> connection_;
    bool rested_;  // nobody used it for a while
    const int exceptions_ = std::uncaught_exceptions();
  };

  // Waits for a connection if all are on loan; urgent calls get one first. Fails as the maker does,
  // or with `unavailable` (deadline, closed) or `cancelled`.
  [[nodiscard]] Result<Loan> take(const CallContext& context) LEASEHOLD_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      const BootTime now = BootClock::now();
      const bool mine = wait_for_one(context, now);
      if (closed_) return fail(ErrorCode::unavailable, "the client is being closed");
      if (context.stop.stop_requested()) {
        wake_next();  // this call may have got the wake-up that another needs
        return fail(ErrorCode::cancelled, "stop was requested while waiting for a connection");
      }
      if (!mine) {
        return fail(ErrorCode::unavailable,
                    "all " + std::to_string(limit_) + " connections were busy all the time");
      }
      ++on_loan_;
      if (!idle_.empty()) return lend_idle(now);
    }
    auto made = make_(context);
    if (!made) {
      give_back(nullptr);
      return fail(std::move(made.error()));
    }
    return Loan(*this, std::move(*made), /*rested=*/false);
  }

  // One that is there, if nobody waits for it; never blocks.
  [[nodiscard]] std::optional<Loan> take_idle() LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (closed_ || idle_.empty() || waiting_ + urgent_waiting_ > 0) return std::nullopt;
    ++on_loan_;
    return lend_idle(BootClock::now());
  }

  // How many calls wait for a connection.
  std::size_t waiting() LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return waiting_ + urgent_waiting_;
  }

  // Drops what is idle: after a failure the others are likely to be broken too.
  void drop_idle() LEASEHOLD_EXCLUDES(mutex_) {
    std::vector<Idle> dropped;
    MutexLock lock(mutex_);
    dropped.swap(idle_);
  }

  // Refuses from now on, and returns when nothing is on loan any more.
  void close() LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    wake_all();
    changed_.wait(mutex_, [this]() LEASEHOLD_REQUIRES(mutex_) { return on_loan_ == 0; });
    idle_.clear();
  }

 private:
  static constexpr std::chrono::milliseconds kRest{10};

  struct Idle {
    std::unique_ptr<Connection> connection;
    BootTime since;
  };

  Loan lend_idle(BootTime now) LEASEHOLD_REQUIRES(mutex_) {
    Idle next = std::move(idle_.back());
    idle_.pop_back();
    return Loan(*this, std::move(next.connection), now - next.since > kRest);
  }

  void give_back(std::unique_ptr<Connection> connection) LEASEHOLD_EXCLUDES(mutex_) {
    const BootTime now = BootClock::now();
    MutexLock lock(mutex_);
    if (connection && !closed_) idle_.push_back({std::move(connection), now});
    --on_loan_;
    if (closed_) return wake_all();
    wake_next();
  }

  bool wait_for_one(const CallContext& context, BootTime now) LEASEHOLD_REQUIRES(mutex_) {
    const auto ready = [&]() LEASEHOLD_REQUIRES(mutex_) {
      const bool my_turn = context.urgent || urgent_waiting_ == 0;
      return closed_ || (my_turn && (!idle_.empty() || on_loan_ < limit_));
    };
    std::size_t& line = context.urgent ? urgent_waiting_ : waiting_;
    ConditionVariable& changed = context.urgent ? urgent_changed_ : changed_;
    ++line;
    const bool mine = changed.wait_for(mutex_, context.stop, context.deadline - now, ready);
    --line;
    if (context.urgent) wake_next();  // others may have waited for this call to go first
    return mine;
  }
  void wake_next() LEASEHOLD_REQUIRES(mutex_) {
    (urgent_waiting_ > 0 ? urgent_changed_ : changed_).notify_one();
  }
  void wake_all() LEASEHOLD_REQUIRES(mutex_) {
    changed_.notify_all();
    urgent_changed_.notify_all();
  }

  const std::size_t limit_;
  const Make make_;
  Mutex mutex_;
  ConditionVariable changed_;
  ConditionVariable urgent_changed_;
  std::size_t waiting_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::size_t urgent_waiting_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::vector<Idle> idle_ LEASEHOLD_GUARDED_BY(mutex_);
  std::size_t on_loan_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

}  // namespace leasehold::waiting
