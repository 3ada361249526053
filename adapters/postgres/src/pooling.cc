#include "pooling.h"

namespace leasehold::postgres {
namespace {

constexpr int kTries = 3;

}  // namespace

Pooling find_pooling(const Host& host, const CallContext& context, const waiting::Alarm& closing) {
  auto first = Connection::open({host}, context, closing);
  auto second = Connection::open({host}, context, closing);
  if (!first || !second) return Pooling::not_proved;
  waiting::CallWait wait(context, closing);
  const auto session_of = [&](Connection& connection) -> std::int64_t {
    const auto pid = connection.run("SELECT pg_backend_pid()", wait);
    return pid ? pid->number(0) : 0;
  };
  // A session that belongs to a connection cannot be another's, nor change, as long as it lives.
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = session_of(**first);
    if (!(*second)->run("BEGIN", wait)) return Pooling::not_proved;
    const std::int64_t between = session_of(**second);
    const std::int64_t after = session_of(**first);
    if (!(*second)->run("ROLLBACK", wait)) return Pooling::not_proved;
    if (before == 0 || between == 0 || after == 0) return Pooling::not_proved;
    if (before == between || before != after) return Pooling::per_transaction;
  }
  return Pooling::not_proved;
}

}  // namespace leasehold::postgres
