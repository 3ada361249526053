// One session with the ensemble: connected again and again by the library until it is over.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "agenda.h"
#include "connection.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/id.h"
#include "leasehold/time.h"
#include "options.h"
#include "ride.h"
#include "signs_of_life.h"

namespace leasehold::zookeeper {

class Session;

// Told with no lock held.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void session_ready(const std::shared_ptr<Session>& session) = 0;  // also after a break
  virtual void session_over(const std::shared_ptr<Session>& session) = 0;   // at most once
  virtual void session_broken(const Session& session) = 0;  // watches may have missed something
  // Before what was asked for after that is answered; also told as node_touched() to who watches.
  virtual void path_touched(const Session& session, const std::string& path) = 0;
  virtual void node_touched(const RequestId& watching) = 0;
};

// Thread safe. `ready`: connected, and the lineage is known and watched.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using WhenReady = std::function<void(const Status&)>;

  // Begins to connect, on the thread of `chores`: that may take as long as a name server does. All
  // of them outlive close().
  static std::shared_ptr<Session> open(const Options& options, Millis timeout, Agenda& agenda,
                                       Agenda& chores, SessionListener& listener);
  // For open().
  Session(const Options& options, Agenda& agenda, SessionListener& listener);

  // Calls `then` when it is ready, perhaps at once, or with the reason when it never will be.
  void when_ready(WhenReady then) LEASEHOLD_EXCLUDES(mutex_);
  bool ready() const LEASEHOLD_EXCLUDES(mutex_);

  // As of now; nothing while it is being read again.
  std::optional<StoreId> lineage() const LEASEHOLD_EXCLUDES(mutex_);
  Millis timeout() const LEASEHOLD_EXCLUDES(mutex_);
  // A grant in it lasts so long, if the servers have answered as they should.
  Millis lasts() const { return certain_part_of(timeout()); }
  // It lasts so long for certain, counted from `began`.
  Millis certain_from(BootTime began) const LEASEHOLD_EXCLUDES(mutex_);
  // A transaction that was sent at `asked` or later has just been answered as done.
  void confirmed(BootTime asked) LEASEHOLD_EXCLUDES(mutex_);
  std::int64_t id() const { return connection_.session_id(); }

  Connection& server() { return connection_; }
  // For what many do at a time: a node that is made or removed.
  Ride& ride() { return *ride_; }

  // listener.node_touched(request) when something happens to the node at `path`, once. Call it
  // before the watch is set by get() or exists().
  void tell_of(const std::string& path, const RequestId& request) LEASEHOLD_EXCLUDES(mutex_);
  // No watch was set after all.
  void tell_no_more(const std::string& path, const RequestId& request) LEASEHOLD_EXCLUDES(mutex_);

  std::string lineage_path() const { return options_.base + "/.lineage"; }

  // Cuts the connection, so that close() leaves the session's nodes standing until it expires.
  void abandon() { connection_.abandon(); }
  // Not from a completion. Ends the session at the server if it is connected.
  void close() LEASEHOLD_EXCLUDES(mutex_);

 private:
  enum class State { connecting, preparing, ready, over };
  class ByConnection;

  void connect(Millis timeout) LEASEHOLD_EXCLUDES(mutex_);
  void changed(Connection::State state);
  void connected() LEASEHOLD_EXCLUDES(mutex_);
  void prepare();
  void prepared(int rc);
  void make_base(std::size_t length);
  void read_lineage();
  void lineage_read(int rc, const std::string& text) LEASEHOLD_EXCLUDES(mutex_);
  void become_ready() LEASEHOLD_EXCLUDES(mutex_);
  void give_up(Error why) LEASEHOLD_EXCLUDES(mutex_);
  void touched(const std::string& path) LEASEHOLD_EXCLUDES(mutex_);
  void beat(Agenda::Reason reason) LEASEHOLD_EXCLUDES(mutex_);

  const Options& options_;
  Agenda& agenda_;
  SessionListener& listener_;
  mutable Mutex mutex_;
  State state_ LEASEHOLD_GUARDED_BY(mutex_) = State::connecting;
  Error why_over_ LEASEHOLD_GUARDED_BY(mutex_){ErrorCode::unavailable, "not connected yet"};
  Millis timeout_ LEASEHOLD_GUARDED_BY(mutex_){0};
  std::optional<StoreId> lineage_ LEASEHOLD_GUARDED_BY(mutex_);
  SignsOfLife signs_ LEASEHOLD_GUARDED_BY(mutex_);
  BootTime opened_ = BootClock::now();
  bool beats_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  bool beat_unanswered_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::vector<WhenReady> waiting_ LEASEHOLD_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::vector<RequestId>> watching_ LEASEHOLD_GUARDED_BY(mutex_);

  const std::shared_ptr<Ride> ride_;
  Connection connection_;  // last: its threads use the rest
};

}  // namespace leasehold::zookeeper
