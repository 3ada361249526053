#include "blocking_session.h"

#include <utility>

#include "kit/try.h"
#include "mailbox.h"

namespace leasehold::zookeeper {
namespace {

constexpr Millis kSessionTimeout{6000};

bool time_is_left(const CallContext& context) {
  return !context.stop.stop_requested() && BootClock::now() < context.deadline;
}

// The server treats the requests of one session in order: who asks next finds the result here, and
// sees all that the leader had.
std::shared_ptr<int> sync(Session& session, const std::string& path) {
  const auto result = std::make_shared<int>(0);
  session.server().sync(path, [result](int rc) { *result = rc; });
  return result;
}

bool broke(int rc) {
  return outcome_of(rc) == Outcome::lost || outcome_of(rc) == Outcome::over;
}

}  // namespace

BlockingSession::~BlockingSession() {
  std::vector<SessionPtr> closing;
  {
    MutexLock lock(mutex_);
    closing = std::exchange(over_, {});
    if (session_) closing.push_back(std::exchange(session_, nullptr));
  }
  agenda_.close();
  chores_.close();
  for (const SessionPtr& it : closing) it->close();
}

void BlockingSession::session_over(const SessionPtr& session) {
  MutexLock lock(mutex_);
  if (session_ != session) return;
  over_.push_back(std::exchange(session_, nullptr));
}

BlockingSession::SessionPtr BlockingSession::current() {
  std::vector<SessionPtr> over;
  SessionPtr found;
  {
    MutexLock lock(mutex_);
    over = std::exchange(over_, {});
    found = session_;
  }
  for (const SessionPtr& it : over) it->close();
  if (found) return found;
  const SessionPtr opened = Session::open(options_, kSessionTimeout, agenda_, chores_, *this);
  {
    MutexLock lock(mutex_);
    if (!session_) session_ = opened;
    found = session_;
  }
  if (found != opened) opened->close();
  return found;
}

Error BlockingSession::late(const CallContext& context, bool sent) const {
  const bool stopped = context.stop.stop_requested();
  const std::string why = stopped ? "stop was requested" : "no answer within the time allowed";
  if (sent) {
    return error_at(options_.address,
                    Error(ErrorCode::outcome_unknown, why + ", after the request was sent"));
  }
  return error_at(options_.address,
                  Error(stopped ? ErrorCode::cancelled : ErrorCode::unavailable, why));
}

Error BlockingSession::lost(int rc) const {
  return error_at(options_.address,
                  Error(ErrorCode::outcome_unknown, "the connection broke before the answer came",
                        words_of(rc)));
}

Result<BlockingSession::SessionPtr> BlockingSession::ready(const CallContext& context) {
  const SessionPtr session = current();
  const auto status = answer_to<Status>(
      context, [&](auto done) { session->when_ready([done](const Status& it) { done(it); }); });
  if (!status) return fail(late(context, /*sent=*/false));
  if (!*status) return fail(error_at(options_.address, status->error()));
  return session;
}

Status BlockingSession::connect(const CallContext& context) {
  TRY(ready(context));
  return {};
}

Result<std::optional<BlockingSession::Node>> BlockingSession::read(const std::string& path,
                                                                   const CallContext& context) {
  using Answer = std::pair<int, Node>;
  for (;;) {
    const auto session = TRY(ready(context));
    auto answer = answer_to<Answer>(context, [&](auto done) {
      const auto synced = sync(*session, path);
      session->server().get(path, false,
                            [done, synced](int rc, std::string data, const NodeStat& stat) {
                              done({*synced == 0 ? rc : *synced, {std::move(data), stat}});
                            });
    });
    if (!answer) return fail(late(context, /*sent=*/false));
    const auto& [rc, node] = *answer;
    if (outcome_of(rc) == Outcome::done) return node;
    if (outcome_of(rc) == Outcome::no_node) return std::nullopt;
    if (!broke(rc) || !time_is_left(context)) {
      return fail(error_at(options_.address,
                           Error(ErrorCode::unavailable, path + " cannot be read", words_of(rc))));
    }
  }
}

Result<std::optional<std::vector<std::string>>> BlockingSession::children(
    const std::string& path, const CallContext& context) {
  using Answer = std::pair<int, std::vector<std::string>>;
  for (;;) {
    const auto session = TRY(ready(context));
    auto answer = answer_to<Answer>(context, [&](auto done) {
      const auto synced = sync(*session, path);
      session->server().children(
          path, [done, synced](int rc, std::vector<std::string> names, const NodeStat&) {
            done({*synced == 0 ? rc : *synced, std::move(names)});
          });
    });
    if (!answer) return fail(late(context, /*sent=*/false));
    auto& [rc, names] = *answer;
    if (outcome_of(rc) == Outcome::done) return std::move(names);
    if (outcome_of(rc) == Outcome::no_node) return std::nullopt;
    if (!broke(rc) || !time_is_left(context)) {
      return fail(error_at(options_.address,
                           Error(ErrorCode::unavailable, path + " cannot be read", words_of(rc))));
    }
  }
}

Result<BlockingSession::Transacted> BlockingSession::transact(std::vector<Step> steps,
                                                              const CallContext& context) {
  const auto session = TRY(ready(context));
  auto answer = answer_to<Transacted>(context, [&](auto done) {
    session->server().transact(std::move(steps), [done](int rc, const std::vector<Stepped>& each) {
      Transacted all{.rc = rc, .each = {}};
      for (const Stepped& it : each) all.each.push_back(it.rc);
      done(std::move(all));
    });
  });
  if (!answer) return fail(late(context, /*sent=*/true));
  if (broke(answer->rc)) return fail(lost(answer->rc));
  return std::move(*answer);
}

Result<int> BlockingSession::create(const std::string& path, const std::string& data,
                                    const CallContext& context) {
  const auto session = TRY(ready(context));
  const auto rc = answer_to<int>(context, [&](auto done) {
    session->server().create(path, data, NodeMode::persistent,
                             [done](int code, const std::string&, const NodeStat&) { done(code); });
  });
  if (!rc) return fail(late(context, /*sent=*/true));
  if (broke(*rc)) return fail(lost(*rc));
  return *rc;
}

Result<int> BlockingSession::set(const std::string& path, const std::string& data,
                                 const CallContext& context) {
  const auto session = TRY(ready(context));
  const auto rc =
      answer_to<int>(context, [&](auto done) { session->server().set(path, data, done); });
  if (!rc) return fail(late(context, /*sent=*/true));
  if (broke(*rc)) return fail(lost(*rc));
  return *rc;
}

}  // namespace leasehold::zookeeper
