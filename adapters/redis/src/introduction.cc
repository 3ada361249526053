#include "introduction.h"

#include "calls.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/resp/command.h"

namespace leasehold::redis {
namespace {

constexpr int kOldestMajor = 5;  // older ones do not let a script read the clock before it writes

}  // namespace

std::string info_field(const std::string& info, const std::string& name) {
  const std::string begins = "\n" + name + ":";
  const auto at = info.find(begins);
  if (at == std::string::npos) return "";
  const auto from = at + begins.size();
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

Introduction introduction_of(const resp::Greeting& greeting, const std::string& info) {
  const auto told = [&](const std::string& greeted, const char* field) {
    return greeted.empty() ? info_field(info, field) : greeted;
  };
  Introduction introduction;
  introduction.version = told(greeting.version, "redis_version");
  introduction.mode = told(greeting.mode, "redis_mode");
  const std::string policy = info_field(info, "maxmemory_policy");
  const std::string limit = info_field(info, "maxmemory");
  if (!limit.empty() && limit != "0" && !policy.empty() && policy != "noeviction") {
    introduction.eviction = "throws keys away when its memory is full (maxmemory-policy " + policy +
                            "), and locks are keys";
    introduction.evicts_lasting_keys = policy.starts_with("allkeys");
  }
  return introduction;
}

Result<std::string> read_info(Server& server, const CallContext& context) {
  std::string command;
  resp::append_command(command, {"INFO"});
  auto asked = server.run(command, context);
  if (asked) return "\n" + asked->text;
  const bool refused = !asked.error().store_code.empty();
  if (refused) return "";
  asked.error().code = ErrorCode::unavailable;
  return fail(std::move(asked.error()));
}

Result<resp::Greeting> greeting_of(Server& server, const CallContext& context) {
  auto loan = TRY(server.borrow(context));
  return loan->greeting();
}

Status check_usable(const Introduction& introduction, const std::string& address) {
  const std::string& mode = introduction.mode;
  if (!mode.empty() && mode != "standalone") {
    return fail(error_at(address, Error(ErrorCode::unsupported,
                                        "the server runs as a " + mode +
                                            ", which is not supported; name a single server")));
  }
  std::string_view version = introduction.version;
  if (!version.empty() && kit::take_number<int>(version).value_or(0) < kOldestMajor) {
    return fail(error_at(
        address, Error(ErrorCode::unavailable, "the server is Redis " + introduction.version +
                                                   "; at least 5.0 is needed")));
  }
  return {};
}

Result<Introduction> learn(Server& server, const CallContext& context) {
  const auto greeting = TRY(greeting_of(server, context));
  const auto info = TRY(read_info(server, context));
  return introduction_of(greeting, info);
}

Status check_writes(Server& server, const StoreId& new_store, const CallContext& context) {
  auto begun = server.run(begin_call(new_store), context);
  if (begun) return {};
  if (begun.error().code == ErrorCode::outcome_unknown) begun.error().code = ErrorCode::unavailable;
  return fail(std::move(begun.error()));
}

Result<Introduction> examine(Server& server, const CallContext& context) {
  auto introduction = learn(server, context);
  if (!introduction) return introduction;
  TRY(check_usable(*introduction, server.address()));
  return introduction;
}

Result<Introduction> introduce(Server& server, const StoreId& new_store,
                               const CallContext& context) {
  auto introduction = examine(server, context);
  if (!introduction) return introduction;
  TRY(check_writes(server, new_store, context));
  return introduction;
}

}  // namespace leasehold::redis
