#include "convoy.h"

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::redis {

using resp::Value;
using waiting::CallWait;

std::shared_ptr<Convoy> Convoy::open(Server& server, const CallContext& context) {
  auto loan = server.borrow(context, Server::Look::if_rested);
  if (!loan) return nullptr;
  return std::make_shared<Convoy>(server, std::move(*loan));
}

Convoy::~Convoy() {
  if (is_over_) server_.drop(loan_);
}

std::optional<Convoy::Sent> Convoy::send(const CallContext& limits,
                                         std::span<const ScriptCall> scripts, bool in_full) {
  std::string commands;
  for (const ScriptCall& script : scripts) script.append_to(commands, in_full);
  CallWait wait(limits, server_.closing());
  Status sent = loan_->send(wait, commands);
  if (!sent) is_over_ = true;
  if (!sent && sent.error().code != ErrorCode::outcome_unknown) return std::nullopt;
  if (!sent) cut_short_ = std::move(sent.error());
  last_ = limits;
  ++number_;
  return Sent(shared_from_this(), limits, scripts.size());
}

Result<Value> Convoy::Sent::reply() {
  Convoy& convoy = *convoy_;
  const bool is_followed = number_ != convoy.number_;
  if (!is_followed && convoy.cut_short_) convoy.broken_ = convoy.cut_short_;
  if (convoy.broken_) return convoy.server_.checked(fail(*convoy.broken_));
  const CallContext both{std::max(limits_.deadline, convoy.last_.deadline), {}};
  CallWait wait(is_followed ? both : limits_, convoy.server_.closing());
  auto reply = convoy.loan_->reply(wait);
  --outstanding_;
  if (!reply) convoy.broken_ = reply.error();
  if (redis::is_over(reply)) convoy.is_over_ = true;
  return convoy.server_.checked(std::move(reply));
}

// What nobody has read would be taken for the replies of the next batch.
Convoy::Sent::~Sent() {
  if (!convoy_ || outstanding_ == 0 || convoy_->broken_) return;
  convoy_->is_over_ = true;
  convoy_->broken_ = Error(ErrorCode::outcome_unknown, "the replies before it were not read");
}

}  // namespace leasehold::redis
