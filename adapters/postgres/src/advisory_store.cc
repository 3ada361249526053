#include "advisory_store.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "kit/try.h"
#include "store_base/renew_replies.h"

namespace leasehold::postgres {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostSessions = 1000;
constexpr Millis kRecheck = 2s;

Result<Granted> read_grant(const Rows& rows, int first, const AcquireCall& call, bool fresh) {
  const auto token = TokenNumber::of(rows.number(first));
  const auto store = rows.id<StoreId>(first + 1);
  if (!token || !store) return fail(ErrorCode::outcome_unknown, "the server gave no token");
  return Granted{*token, *store, call.ttl.length(), fresh};
}

enum Column { kOutcome, kToken, kStore, kAhead, kRecheckMs, kFresh, kHasLock, kKey };

}  // namespace

// Gives the session back when the call is over, unless it was let go.
class AdvisoryStore::Use {
 public:
  Use(AdvisoryStore& store, SessionPointer session) : store_(store), session_(std::move(session)) {}
  ~Use() { store_.put_back(session_); }
  Use(const Use&) = delete;

 private:
  AdvisoryStore& store_;
  SessionPointer session_;
};

// ---- opening and closing -------------------------------------------------------------------

AdvisoryStore::AdvisoryStore(Options options, Random& random)
    : CommonStore(std::move(options), random,
                  {.status = "session_status",
                   .force_release = "session_force",
                   .record = "session_record"},
                  kMostSessions),
      acquire_(
          statement("acquire", "SELECT * FROM @S.session_acquire($1, $2, $3, $4, $5, $6, $7)")),
      wait_(statement("wait", "SELECT pg_advisory_lock($1)")),
      grant_(statement("grant", "SELECT * FROM @S.session_grant($1, $2, $3, $4, $5)")),
      renew_(statement("renew", "SELECT @S.session_renew($1, $2, $3)")),
      release_(statement("release", "SELECT @S.session_release($1, $2, $3)")),
      force_(statement("", "SELECT @S.session_force($1, $2)")),
      poke_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<std::unique_ptr<Store>> AdvisoryStore::open(Options options, Random& random,
                                                   const CallContext& context) {
  std::unique_ptr<AdvisoryStore> store(new AdvisoryStore(std::move(options), random));
  TRY(store->prepare(context));
  return store;
}

Status AdvisoryStore::suits(const Server& server) const {
  if (!server.pooled) return {};
  return fail(ErrorCode::unsupported,
              "a connection pooler such as pgbouncer is between this program and the server, and a "
              "session lock would be lost or shared there; name the server itself, or use "
              "mode=rows");
}

void AdvisoryStore::do_close() {
  closing_.raise();
  std::map<RequestId, SessionPointer> ending;
  std::thread watcher;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    ending.swap(by_request_);
    watcher = std::move(watcher_);
    changed_.notify_all();
  }
  ending.clear();
  if (watcher.joinable()) watcher.join();
  pool_.close();
}

// ---- sessions ------------------------------------------------------------------------------

Result<AdvisoryStore::SessionPointer> AdvisoryStore::take_session(const RequestId& request,
                                                                  const CallContext& context) {
  MutexLock lock(mutex_);
  SessionPointer found;
  const bool free = changed_.wait_for(mutex_, context.stop, context.deadline - BootClock::now(),
                                      [&]() LEASEHOLD_REQUIRES(mutex_) {
                                        const auto it = by_request_.find(request);
                                        found = it == by_request_.end() ? nullptr : it->second;
                                        return closed_ || !found || !found->busy;
                                      });
  if (closed_) return fail(ErrorCode::unavailable, "the client is being closed");
  if (!free) {
    return fail(context.stop.stop_requested() ? ErrorCode::cancelled : ErrorCode::unavailable,
                "another call used the session all the time");
  }
  if (found) found->busy = true;
  return found;
}

void AdvisoryStore::put_back(const SessionPointer& session) {
  bool to_be_watched = false;
  {
    MutexLock lock(mutex_);
    session->busy = false;
    to_be_watched = session->phase == Phase::waiting && !session->told;
    changed_.notify_all();
  }
  if (to_be_watched) poke_watcher();
}

// Its connection goes back to the pool with the last user, unless it was discarded.
void AdvisoryStore::let_go(const RequestId& request, const SessionPointer& session) {
  MutexLock lock(mutex_);
  const auto found = by_request_.find(request);
  if (found != by_request_.end() && found->second == session) by_request_.erase(found);
}

// ---- acquire -------------------------------------------------------------------------------

Result<AcquireReply> AdvisoryStore::do_acquire(const AcquireCall& call,
                                               const CallContext& context) {
  auto session = TRY(take_session(call.request, context));
  return session ? acquire_in(session, call, context) : acquire_anew(call, context);
}

Result<AcquireReply> AdvisoryStore::acquire_anew(const AcquireCall& call,
                                                 const CallContext& context) {
  auto loan = TRY(healthy_connection(context));
  const auto session = std::make_shared<Session>(std::move(loan));
  {
    MutexLock lock(mutex_);
    if (closed_) return fail(ErrorCode::unavailable, "the client is being closed");
    by_request_[call.request] = session;
  }
  return acquire_in(session, call, context);
}

Result<AcquireReply> AdvisoryStore::acquire_in(const SessionPointer& session,
                                               const AcquireCall& call,
                                               const CallContext& context) {
  const Use use(*this, session);
  auto reply = acquire_with(session, call, context);
  if (reply && !std::holds_alternative<Busy>(*reply)) return reply;
  let_go(call.request, session);
  // What a failed call took is not given back by its rollback: the session must end.
  if (!reply) {
    session->connection.discard();
    doubts().doubt(call.request);
  }
  return reply;
}

Result<AcquireReply> AdvisoryStore::acquire_with(const SessionPointer& session,
                                                 const AcquireCall& call,
                                                 const CallContext& context) {
  waiting::CallWait wait(context, closing_);
  Connection& connection = *session->connection;
  if (session->phase == Phase::held) return granted_already(call, context);
  if (session->phase == Phase::waiting) {
    if (!connection.has_answer()) return Queued{kRecheck, session->ahead};
    TRY(connection.receive(wait));
    session->phase = Phase::has_lock;
  }
  const std::string request = call.request.hex();
  const std::string ttl = number(call.ttl.length());
  const char* queue = call.queue ? "t" : "f";
  const bool is_new = session->phase == Phase::asking;
  // Later attempts of a request have larger numbers: they end what earlier ones left behind.
  const std::string attempt = std::to_string(BootClock::now().time_since_epoch().count());
  const char* lock = call.lock.str().c_str();
  const char* owner = call.owner.str().c_str();
  const auto rows = TRY(
      is_new ? connection.run(acquire_,
                              {lock, request.c_str(), owner, ttl.c_str(), queue, attempt.c_str(),
                               doubts().doubts(call.request) ? "t" : "f"},
                              wait)
             : connection.run(grant_, {lock, request.c_str(), owner, ttl.c_str(), queue}, wait));
  if (rows.text(kOutcome) == "granted") {
    auto grant = TRY(read_grant(rows, kToken, call, rows.flag(kFresh)));
    session->phase = Phase::held;
    return grant;
  }
  if (rows.text(kOutcome) == "busy") return Busy{label_or_nothing(rows.text(kAhead))};
  if (!is_new || rows.flag(kHasLock)) {
    session->phase = Phase::has_lock;
    return Queued{Millis(rows.number(kRecheckMs)), label_or_nothing(rows.text(kAhead))};
  }
  return wait_in_line(session, rows, wait);
}

// The same grant again, without a word to its session, whose idle time must not begin anew.
Result<AcquireReply> AdvisoryStore::granted_already(const AcquireCall& call,
                                                    const CallContext& context) {
  const auto rows =
      TRY(ask(statement("",
                        "SELECT token, store FROM @S.session_lock"
                        " WHERE name = $1 AND request = $2 AND expires_at > clock_timestamp()"),
              {call.lock.str().c_str(), call.request.hex().c_str()}, context));
  if (rows.count() == 0) {
    return fail(ErrorCode::unavailable, "the session that had the lock has ended");
  }
  auto grant = TRY(read_grant(rows, 0, call, /*fresh=*/false));
  return grant;
}

Result<AcquireReply> AdvisoryStore::wait_in_line(const SessionPointer& session, const Rows& rows,
                                                 waiting::CallWait& wait) {
  const std::string key(rows.text(kKey));
  TRY(session->connection->send(wait_, {key.c_str()}, wait));
  session->phase = Phase::waiting;
  session->told = false;
  session->ahead = label_or_nothing(rows.text(kAhead));
  {
    MutexLock lock(mutex_);
    if (!watcher_.joinable() && !closed_) watcher_ = std::thread([this] { watch(); });
  }
  return Queued{kRecheck, session->ahead};
}

// ---- the watcher ---------------------------------------------------------------------------

void AdvisoryStore::poke_watcher() {
  const std::uint64_t one = 1;
  (void)!write(poke_.get(), &one, sizeof one);
}

void AdvisoryStore::watch() {
  for (;;) {
    std::vector<pollfd> polled = {{closing_.fd(), POLLIN, 0}, {poke_.get(), POLLIN, 0}};
    std::vector<std::pair<RequestId, SessionPointer>> waiting;
    {
      MutexLock lock(mutex_);
      if (closed_) return;
      for (const auto& [request, session] : by_request_) {
        if (session->busy || session->told || session->phase != Phase::waiting) continue;
        waiting.emplace_back(request, session);
        polled.push_back({session->connection->fd(), POLLIN, 0});
      }
    }
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) return;
    std::uint64_t pokes = 0;
    if (polled[1].revents != 0) (void)!read(poke_.get(), &pokes, sizeof pokes);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (polled[i + 2].revents == 0) continue;
      auto& [request, session] = waiting[i];
      bool answered = false;
      {
        MutexLock lock(mutex_);
        if (closed_) return;
        const auto found = by_request_.find(request);
        const bool is_over = found == by_request_.end() || found->second != session;
        if (is_over || session->busy || session->phase != Phase::waiting) continue;
        answered = session->connection->has_answer();
        session->told = answered;
      }
      if (answered) events().nudged(request);
    }
  }
}

// ---- renew and release ---------------------------------------------------------------------

// All are sent before the first answer is waited for. A session that still owes the answer of a
// renewal whose time ran out comes last: it may cost the rest of the time.
Result<std::vector<RenewReply>> AdvisoryStore::do_renew(const std::vector<RenewCall>& calls,
                                                        const CallContext& context) {
  waiting::CallWait wait(context, closing_);
  std::vector<RenewReply> replies(calls.size(), RenewReply::gone);
  std::list<Use> uses;
  std::vector<SessionPointer> asked(calls.size());
  std::vector<std::pair<std::size_t, SessionPointer>> held;
  std::optional<Error> failure;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto session = take_session(calls[i].request, context);
    if (!session) {
      replies[i] = RenewReply::unknown;
      failure = std::move(session.error());
      continue;
    }
    if (!*session) continue;
    uses.emplace_back(*this, *session);
    if ((*session)->phase == Phase::held) held.emplace_back(i, *session);
  }
  std::stable_partition(held.begin(), held.end(),
                        [](const auto& it) { return !it.second->connection->owes_answer(); });
  for (const auto& [i, session] : held) {
    Connection& connection = *session->connection;
    if (connection.owes_answer()) {
      auto late = connection.receive(wait);
      if (connection.owes_answer()) {
        replies[i] = RenewReply::unknown;
        failure = std::move(late.error());
        continue;
      }
    }
    if (!connection.healthy()) {
      connection.give_up();
      continue;
    }
    const std::string request = calls[i].request.hex();
    const std::string ttl = number(calls[i].ttl.length());
    const auto sent =
        connection.send(renew_, {calls[i].lock.str().c_str(), request.c_str(), ttl.c_str()}, wait);
    if (sent) {
      asked[i] = session;
    } else if (connection.owes_answer()) {
      replies[i] = RenewReply::unknown;
      failure = sent.error();
    }
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!asked[i]) continue;
    Connection& connection = *asked[i]->connection;
    auto rows = connection.receive(wait);
    if (rows) {
      if (rows->flag(0)) replies[i] = RenewReply::renewed;
    } else if (connection.owes_answer() || !connection.broken()) {
      replies[i] = RenewReply::unknown;
      failure = std::move(rows.error());
    }  // else the session has ended, and the lock with it
  }
  uses.clear();
  for (std::size_t i = 0; i < calls.size(); ++i) give_up_if_ended(calls[i], context);
  return unless_all_unknown(std::move(replies), std::move(failure));
}

// The holder is told that its grant is gone, so that the others need not wait until it would have
// ended.
void AdvisoryStore::give_up_if_ended(const RenewCall& call, const CallContext& context) {
  const auto session = take_session(call.request, context);
  if (!session || !*session) return;
  const Use use(*this, *session);
  Connection& connection = *(*session)->connection;
  const bool has_ended =
      (*session)->phase == Phase::held && connection.broken() && !connection.owes_answer();
  if (!has_ended) return;
  let_go(call.request, *session);
  (*session)->connection.discard();
  (void)ask(force_, {call.lock.str().c_str(), call.request.hex().c_str()}, context);
}

Result<ReleaseReply> AdvisoryStore::do_release(const ReleaseCall& call,
                                               const CallContext& context) {
  auto session = TRY(take_session(call.request, context));
  const std::string request = call.request.hex();
  const bool doubtful = doubts().doubts(call.request);
  const Parameters parameters = {call.lock.str().c_str(), request.c_str(), doubtful ? "t" : "f"};
  if (session) {
    const Use use(*this, session);
    let_go(call.request, session);
    Connection& connection = *session->connection;
    if (session->phase == Phase::held && !connection.broken() && connection.healthy()) {
      waiting::CallWait wait(context, closing_);
      const auto rows = connection.run(release_, parameters, wait);
      if (!rows) {
        session->connection.discard();
        return fail(rows.error());
      }
      // A session that did not have the lock is not what it seemed to be.
      if (!rows->flag(0)) session->connection.discard();
      return rows->flag(0) ? ReleaseReply::released : ReleaseReply::not_held;
    }
    session->connection.discard();
  }
  // From any session: the one that has the lock, or waits for it, is ended.
  const auto rows = TRY(ask(release_, parameters, context));
  return rows.flag(0) ? ReleaseReply::released : ReleaseReply::not_held;
}

}  // namespace leasehold::postgres
