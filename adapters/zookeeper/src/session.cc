#include "session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "leasehold/random.h"

namespace leasehold::zookeeper {

class Session::ByConnection final : public Road {
 public:
  explicit ByConnection(Session& session) : session_(session) {}

  void create(const std::string& path, const std::string& data, Connection::Created done) override {
    server().create(path, data, NodeMode::ephemeral_sequential, std::move(done));
  }
  void remove(const std::string& path, Connection::Replied done) override {
    server().remove(path, std::move(done));
  }
  void transact(std::vector<Step> steps, Connection::Transacted done) override {
    server().transact(std::move(steps), std::move(done));
  }
  void exists(const std::string& path, Connection::Read done) override {
    server().exists(path, false, std::move(done));
  }
  BootTime now() const override { return BootClock::now(); }
  void call_at(BootTime when, std::function<void()> what) override {
    session_.agenda_.add(
        when, [weak = session_.weak_from_this(), what = std::move(what)](Agenda::Reason why) {
          const auto self = weak.lock();
          if (self && why == Agenda::Reason::due) what();
        });
  }

 private:
  Connection& server() { return session_.connection_; }

  Session& session_;
};

std::shared_ptr<Session> Session::open(const Options& options, Millis timeout, Agenda& agenda,
                                       Agenda& chores, SessionListener& listener) {
  auto session = std::make_shared<Session>(options, agenda, listener);
  chores.add(BootClock::now(), [session, timeout](Agenda::Reason reason) {
    if (reason == Agenda::Reason::due) session->connect(timeout);
  });
  return session;
}

Session::Session(const Options& options, Agenda& agenda, SessionListener& listener)
    : options_(options),
      agenda_(agenda),
      listener_(listener),
      ride_(std::make_shared<Ride>(std::make_unique<ByConnection>(*this))),
      connection_({.changed = [this](Connection::State state) { changed(state); },
                   .touched = [this](const std::string& path) { touched(path); }}) {}

// ---- from connecting to ready, and back -----------------------------------------------------

void Session::connect(Millis timeout) {
  {
    MutexLock lock(mutex_);
    if (state_ == State::over) return;
  }
  if (auto ok = connection_.open(options_, timeout); !ok) give_up(std::move(ok.error()));
}

void Session::changed(Connection::State state) {
  switch (state) {
    case Connection::State::connected:
      return connected();
    case Connection::State::connecting: {
      {
        MutexLock lock(mutex_);
        if (state_ != State::over) state_ = State::connecting;
      }
      return listener_.session_broken(*this);
    }
    case Connection::State::expired:
      return give_up(Error(ErrorCode::unavailable, "the server has ended the session"));
    case Connection::State::denied:
      return give_up(Error(ErrorCode::unavailable, "the server refused the user or the password"));
  }
}

void Session::connected() {
  const Millis negotiated = connection_.session_timeout();
  bool first_time = false;
  bool lineage_is_watched = false;
  {
    MutexLock lock(mutex_);
    if (state_ == State::over) return;
    state_ = State::preparing;
    timeout_ = negotiated;
    first_time = !std::exchange(beats_, true);
    if (first_time) signs_.opened(opened_, negotiated);
    lineage_is_watched = lineage_.has_value();
  }
  if (first_time) beat(Agenda::Reason::due);
  if (lineage_is_watched) return become_ready();
  prepare();
}

// Also finds out whether the server knows this kind of request.
void Session::prepare() {
  connection_.create(lineage_path(), lineage_text(StoreId::random(system_random())),
                     NodeMode::persistent,
                     [this](int rc, const std::string&, const NodeStat&) { prepared(rc); });
}

void Session::prepared(int rc) {
  switch (outcome_of(rc)) {
    case Outcome::done:
    case Outcome::node_exists:
      return read_lineage();
    case Outcome::no_node:
      return make_base(options_.base.find('/', 1));
    case Outcome::lost:
    case Outcome::over:
      return;  // an event tells how it goes on
    case Outcome::too_old:
      return give_up(Error(ErrorCode::unavailable,
                           "the server is too old; ZooKeeper 3.5 or later is needed",
                           words_of(rc)));
    case Outcome::refused:
      return give_up(Error(ErrorCode::unavailable,
                           "the server does not let this client write in " + options_.base,
                           words_of(rc)));
  }
}

// Makes the part of the base that ends at `length`, then the longer ones.
void Session::make_base(std::size_t length) {
  const std::string part = options_.base.substr(0, length);
  const bool whole = part.size() == options_.base.size();
  // Others may want a folder beside ours.
  connection_.create(part, "", whole ? NodeMode::persistent : NodeMode::common,
                     [this, part](int rc, const std::string&, const NodeStat&) {
                       const Outcome outcome = outcome_of(rc);
                       if (outcome != Outcome::done && outcome != Outcome::node_exists) {
                         return prepared(rc);
                       }
                       if (part.size() == options_.base.size()) return prepare();
                       make_base(options_.base.find('/', part.size() + 1));
                     });
}

void Session::read_lineage() {
  connection_.get(lineage_path(), true, [this](int rc, const std::string& text, const NodeStat&) {
    lineage_read(rc, text);
  });
}

void Session::lineage_read(int rc, const std::string& text) {
  const Outcome outcome = outcome_of(rc);
  if (outcome == Outcome::no_node) return prepare();  // it was removed; a new life begins
  if (outcome != Outcome::done) return prepared(rc);
  const auto lineage = lineage_in(text);
  if (!lineage) return give_up(why_not_ours(lineage_path(), text));
  {
    MutexLock lock(mutex_);
    lineage_ = lineage;
  }
  become_ready();
}

void Session::become_ready() {
  std::vector<WhenReady> waiting;
  {
    MutexLock lock(mutex_);
    if (state_ != State::preparing) return;
    state_ = State::ready;
    waiting.swap(waiting_);
  }
  for (WhenReady& it : waiting) it({});
  listener_.session_ready(shared_from_this());
}

void Session::give_up(Error why) {
  std::vector<WhenReady> waiting;
  {
    MutexLock lock(mutex_);
    if (state_ == State::over) return;
    state_ = State::over;
    why_over_ = why;
    waiting.swap(waiting_);
  }
  listener_.session_over(shared_from_this());
  for (WhenReady& it : waiting) it(fail(why));
}

void Session::when_ready(WhenReady then) {
  Status status;
  {
    MutexLock lock(mutex_);
    if (state_ == State::over) {
      status = fail(why_over_);
    } else if (state_ != State::ready) {
      waiting_.push_back(std::move(then));
      return;
    }
  }
  then(status);
}

void Session::close() {
  give_up(Error(ErrorCode::unavailable, "the client is being closed"));
  ride_->close();
  connection_.close();
}

// ---- what is watched ------------------------------------------------------------------------

void Session::touched(const std::string& path) {
  if (path == lineage_path()) {
    {
      MutexLock lock(mutex_);
      lineage_.reset();
      if (state_ == State::ready) state_ = State::preparing;
    }
    return read_lineage();
  }
  listener_.path_touched(*this, path);
  std::vector<RequestId> told;
  {
    MutexLock lock(mutex_);
    const auto found = watching_.find(path);
    if (found == watching_.end()) return;
    told = std::move(found->second);
    watching_.erase(found);
  }
  for (const RequestId& it : told) listener_.node_touched(it);
}

void Session::tell_of(const std::string& path, const RequestId& request) {
  MutexLock lock(mutex_);
  std::vector<RequestId>& told = watching_[path];
  if (std::find(told.begin(), told.end(), request) == told.end()) told.push_back(request);
}

void Session::tell_no_more(const std::string& path, const RequestId& request) {
  MutexLock lock(mutex_);
  const auto found = watching_.find(path);
  if (found == watching_.end()) return;
  std::erase(found->second, request);
  if (found->second.empty()) watching_.erase(found);
}

// The library itself pings only every third of the session.
void Session::beat(Agenda::Reason reason) {
  if (reason == Agenda::Reason::closing) return;
  bool send = false;
  Millis interval{0};
  {
    MutexLock lock(mutex_);
    if (state_ == State::over) return;
    send = state_ != State::connecting && !std::exchange(beat_unanswered_, true);
    interval = heartbeat_of(timeout_);
  }
  if (send) {
    const BootTime sent = BootClock::now();
    connection_.exists(
        lineage_path(), false, [this, sent](int rc, const std::string&, const NodeStat&) {
          const Outcome outcome = outcome_of(rc);
          MutexLock lock(mutex_);
          beat_unanswered_ = false;
          const bool answered = outcome == Outcome::done || outcome == Outcome::no_node;
          if (answered) signs_.answered(sent, BootClock::now());
        });
  }
  agenda_.add(BootClock::now() + interval, [weak = weak_from_this()](Agenda::Reason why) {
    if (auto self = weak.lock()) self->beat(why);
  });
}

bool Session::ready() const {
  MutexLock lock(mutex_);
  return state_ == State::ready;
}

std::optional<StoreId> Session::lineage() const {
  MutexLock lock(mutex_);
  return lineage_;
}

Millis Session::certain_from(BootTime began) const {
  MutexLock lock(mutex_);
  const BootTime until = signs_.certain_until();
  return until < began ? Millis(0) : std::chrono::duration_cast<Millis>(until - began);
}

void Session::confirmed(BootTime asked) {
  MutexLock lock(mutex_);
  signs_.confirmed(asked, BootClock::now());
}

Millis Session::timeout() const {
  MutexLock lock(mutex_);
  return timeout_;
}

}  // namespace leasehold::zookeeper
