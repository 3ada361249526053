#include "introduction.h"

#include <cstdlib>

#include "calls.h"
#include "leasehold/resp/command.h"

namespace leasehold::redis {
namespace {

constexpr int kOldestMajor = 5;  // older ones do not let a script read the clock before it writes

// "name:value" in a line of INFO.
std::string field(const std::string& info, const std::string& name) {
  const std::string begins = "\n" + name + ":";
  const auto at = info.find(begins);
  if (at == std::string::npos) return "";
  const auto from = at + begins.size();
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

}  // namespace

Result<Introduction> examine(Server& server, const CallContext& context) {
  resp::Greeting greeting;
  {
    auto loan = server.borrow(context);
    if (!loan) return fail(std::move(loan.error()));
    greeting = (*loan)->greeting();
  }
  std::string command;
  resp::append_command(command, {"INFO"});
  const auto asked = server.run(command, context);
  const bool broken = !asked && asked.error().store_words.empty();
  if (broken) return fail(ErrorCode::unavailable, asked.error().message);
  const std::string info = asked ? "\n" + asked->text : "";  // not every user may ask

  Introduction introduction;
  introduction.version = greeting.version.empty() ? field(info, "redis_version") : greeting.version;
  const std::string mode = greeting.mode.empty() ? field(info, "redis_mode") : greeting.mode;
  if (!mode.empty() && mode != "standalone") {
    return fail(ErrorCode::unsupported, server.address() + ": the server runs as a " + mode +
                                            ", which is not supported; name a single server");
  }
  if (!introduction.version.empty() && std::atoi(introduction.version.c_str()) < kOldestMajor) {
    return fail(ErrorCode::unsupported, server.address() + ": the server is Redis " +
                                            introduction.version + "; at least 5.0 is needed");
  }
  const std::string policy = field(info, "maxmemory_policy");
  const std::string limit = field(info, "maxmemory");
  if (!limit.empty() && limit != "0" && !policy.empty() && policy != "noeviction") {
    introduction.eviction = "throws keys away when its memory is full (maxmemory-policy " + policy +
                            "), and locks are keys";
    introduction.evicts_lasting_keys = policy.starts_with("allkeys");
  }
  return introduction;
}

Result<Introduction> introduce(Server& server, const StoreId& new_store,
                               const CallContext& context) {
  auto introduction = examine(server, context);
  if (!introduction) return introduction;
  auto begun = server.run(begin_call(new_store), context);
  if (!begun) {
    if (begun.error().code == ErrorCode::outcome_unknown)
      begun.error().code = ErrorCode::unavailable;
    return fail(std::move(begun.error()));
  }
  return introduction;
}

}  // namespace leasehold::redis
