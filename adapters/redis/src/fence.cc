#include "leasehold/redis/fence.h"

#include "fence/attempt.h"
#include "fence_call.h"
#include "fence_lua.h"
#include "fence_marks.h"
#include "kit/try.h"
#include "open_server.h"

namespace leasehold::redis {
namespace {

Ticket ticket_of(const Token& token, const EnterOptions& options) {
  const char* const to_write = options.entry == Entry::single ? "single" : "enter";
  return {.mode = options.access == Access::read ? "read" : to_write,
          .number = std::to_string(token.number.value()),
          .lineage = token.lineage.str(),
          .request = token.request.hex(),
          .sequence = options.sequence};
}

Error taken_over(const Claim& claim, Error error) {
  if (error.store_code != kRefused) return error;
  error.address.clear();  // the sentence names the resource
  const std::string sentence = "resource '" + claim.resource().str() + "' refused request " +
                               claim.request().hex() + ": another request has claimed it since";
  error.message = error.code == ErrorCode::fenced_out
                      ? sentence
                      : "the reply to the command was lost, and now " + sentence;
  return error;
}

// Names the number of claims that it has seen, so that a claim that is late in the network, or
// comes twice, cannot take over from one that came in between.
Result<TokenNumber> take(Server& server, const ResourceName& resource, const RequestId& request,
                         const EnterOptions& options) {
  const BootTime end = BootClock::now() + options.timeout;
  std::string seen = "0";
  for (;;) {
    EnterOptions rest = options;
    rest.timeout = std::chrono::duration_cast<Millis>(end - BootClock::now());
    const FenceCall call(resource, {.mode = "claim", .number = seen, .request = request.hex()});
    const auto reply = call.run(server, rest);
    if (reply) return TokenNumber::parse(reply->text);
    if (reply.error().store_code != kMoved) return fail(reply.error());
    seen = std::to_string(reply.error().refusal->mark);
  }
}

}  // namespace

std::string_view fence_script() {
  return kFenceLua;
}

// ---- Resources -----------------------------------------------------------------------------

Result<Resources> Resources::open(std::string_view url) {
  const auto parsed = TRY(server_url(url, "the data of a fence is"));
  auto server = TRY(open_fenced_server(parsed));
  return Resources(std::move(server));
}

Result<Fence> Resources::fence(std::string_view resource) const {
  auto name = TRY(ResourceName::parse(resource));
  return Fence(server_, std::move(name));
}

Result<Claim> Resources::claim(std::string_view resource, const RequestId& request,
                               const EnterOptions& options) const {
  auto name = TRY(ResourceName::parse(resource));
  const auto number = TRY(take(*server_, name, request, options));
  return Claim(server_, std::move(name), request, number);
}

Result<std::vector<FenceMark>> Resources::marks() const {
  return read_marks(*server_);
}

// ---- Fence ---------------------------------------------------------------------------------

Status Fence::enter(const Token& token, const EnterOptions& options) const {
  TRY(fence::check_reader(options));
  const auto done = FenceCall(resource_, ticket_of(token, options)).run(*server_, options);
  if (!done) return fail(explained(resource_, token, done.error()));
  return {};
}

Result<Reply> Fence::run(const Token& token, const Command& command,
                         const EnterOptions& options) const {
  TRY(check_call(command, options));
  TRY(fence::check_reader(options));
  auto reply = FenceCall(resource_, ticket_of(token, options), command).run(*server_, options);
  if (!reply) return fail(explained(resource_, token, std::move(reply.error())));
  return reply_of(std::move(*reply));
}

Result<std::optional<FenceMark>> Fence::mark(const EnterOptions& options) const {
  return read_mark(*server_, resource_, fence::context_of(options));
}

// ---- Claim ---------------------------------------------------------------------------------

Result<Reply> Claim::run(const Command& command, const EnterOptions& options) const {
  TRY(check_call(command, options));
  const Ticket ticket{.mode = "confirm",
                      .number = std::to_string(number_.value()),
                      .request = request_.hex(),
                      .sequence = options.sequence};
  auto reply = FenceCall(resource_, ticket, command).run(*server_, options);
  if (!reply) return fail(taken_over(*this, std::move(reply.error())));
  return reply_of(std::move(*reply));
}

}  // namespace leasehold::redis
