#include "plain_session.h"

#include "kit/try.h"
#include "probe.h"

namespace leasehold::zookeeper {

PlainSession::PlainSession()
    : first_(std::make_shared<Mailbox<Connection::State>>()),
      connection_({.changed =
                       [first = first_](Connection::State state) {
                         if (state != Connection::State::connecting) first->fill(state);
                       },
                   .touched = [](const std::string&) {}}) {}

Result<std::unique_ptr<PlainSession>> PlainSession::open(const Options& options, Millis timeout,
                                                         const CallContext& context) {
  std::unique_ptr<PlainSession> session(new PlainSession());
  TRY(session->connection_.open(options, timeout));
  const auto state = session->first_->wait(context);
  if (state == Connection::State::connected) return session;
  if (state == Connection::State::denied) {
    return fail(
        error_at(options.address, Error(ErrorCode::unavailable, "the server refuses the user")));
  }
  return fail(
      error_at(options.address, Error(ErrorCode::unavailable, "no server of the ensemble serves",
                                      states_of(options.hosts).words)));
}

std::optional<PlainSession::Node> PlainSession::get(const std::string& path,
                                                    const CallContext& context) {
  return answer_to<Node>(context, [&](auto done) {
    connection_.get(path, false, [done](int rc, std::string data, const NodeStat& stat) {
      done(Node{rc, std::move(data), stat});
    });
  });
}

std::optional<int> PlainSession::create(const std::string& path, const CallContext& context) {
  return answer_to<int>(context, [&](auto done) {
    connection_.create(path, "", NodeMode::persistent,
                       [done](int rc, const std::string&, const NodeStat&) { done(rc); });
  });
}

std::optional<int> PlainSession::remove(const std::string& path, const CallContext& context) {
  return answer_to<int>(context,
                        [&](auto done) { connection_.remove(path, [done](int rc) { done(rc); }); });
}

}  // namespace leasehold::zookeeper
