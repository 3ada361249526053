// The fence for data in Redis: a command is run inside a script on the server, and only if the
// token may enter. Programs in every language run the same script; docs/fence-redis.md shows how.
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not
// with single entry); a token of another lineage is refused and never compared; the first token to
// enter decides the lineage. Marks are kept forever, in the hashes leasehold:fence:<resource>.
//
// The mark is as durable as the data beside it, no more: see docs/fence-redis.md for appendfsync
// and failover.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold::redis {

class Server;

// One command of Redis and its arguments, as in {"HSET", "invoice/1234", "paid", "1"}. Any that
// Redis allows in a script, of at most 3995 words.
using Command = std::vector<std::string>;

// What a command answered.
struct Reply {
  enum class Kind { nothing, text, integer, list };
  Kind kind = Kind::nothing;
  std::string text = {};
  std::int64_t integer = 0;
  std::vector<Reply> items = {};
  // This sequence number was used by this very command before, with an answer that is not known any
  // more; it was not done again.
  bool repeated = false;
};

class Fence;
class Claim;

// The data of one Redis server. Thread safe; moved and copied like a pointer. Calls work on the
// calling thread, each on a connection of its own, up to `?connections=` (64). A forked child must
// open its own.
class Resources {
 public:
  // "redis://host:6379/0", with the options of the lock store; `prefix` means nothing here.
  // Connects. Fails with `invalid` (URL), `unavailable` (server), `unsupported` (a cluster: run the
  // script with a cluster client; Redis before 5.0), `unsafe_for_correctness` (the server may evict
  // marks).
  [[nodiscard]] static Result<Resources> open(std::string_view url);

  // Fails with `invalid` for a wrong name (1 to 512 bytes of UTF-8 without control characters).
  [[nodiscard]] Result<Fence> fence(std::string_view resource) const;

  // Takes over the resource for `request`, from whoever was there: see Claim.
  // Fails with `invalid` (name; the resource is used with tokens), `unavailable`, `cancelled`, or
  // `outcome_unknown`: whether it was taken over is not known, and doing it again is safe.
  [[nodiscard]] Result<Claim> claim(std::string_view resource, const RequestId& request,
                                    const EnterOptions& options = {}) const;

  // All marks, by resource name. Looks through the whole keyspace in small steps.
  [[nodiscard]] Result<std::vector<FenceMark>> marks() const;

 private:
  explicit Resources(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  std::shared_ptr<Server> server_;
};

// One resource behind the fence. A small value that may be copied; thread safe.
//
// Every call fails with
// - `fenced_out`: refused, and the refusal is counted; error.refusal has both numbers.
// - `invalid`: the resource is used with claims, the sequence number was used for another command,
//   or Redis does not accept the command; error.store_words has its words.
// - `unavailable`, `cancelled`: it was not done.
// - `outcome_unknown`: the command may have been done, or may still be. With a sequence number the
//   call has repeated it by itself as long as there was time. Another holder may have entered
//   since.
// After `fenced_out` nothing has changed. After every other failure the mark may have been raised
// to this token: the holder has entered.
class Fence {
 public:
  const ResourceName& resource() const { return resource_; }

  // Raises the mark. Do it before you read: what was read before entering may be stale.
  [[nodiscard]] Status enter(const Token& token, const EnterOptions& options = {}) const;

  // Enters, and runs the command in the same atomic step.
  [[nodiscard]] Result<Reply> run(const Token& token, const Command& command,
                                  const EnterOptions& options = {}) const;

  // What is remembered of this resource; nothing if it was never entered.
  [[nodiscard]] Result<std::optional<FenceMark>> mark(const EnterOptions& options = {}) const;

 private:
  friend class Resources;
  Fence(std::shared_ptr<Server> server, ResourceName resource)
      : server_(std::move(server)), resource_(std::move(resource)) {}

  std::shared_ptr<Server> server_;
  ResourceName resource_;
};

// The stand-in for a fence where the lock has no order to give (Redis, Redlock): no token, only a
// request id. Claim the resource, read, work, and write only while the claim is still there.
//
// The last to claim wins, be it late or not: a slow holder may push out the rightful one. No
// accepted update is lost all the same, because only one of the two can write. A resource is used
// with tokens or with claims, never with both: the first use decides.
//
// A small value that may be copied; thread safe. Fails as Fence does; `fenced_out`: somebody else
// has claimed since. Then claim again and read everything again.
class Claim {
 public:
  const ResourceName& resource() const { return resource_; }
  const RequestId& request() const { return request_; }

  // Runs the command if the claim is still there. `options.entry` means nothing here.
  [[nodiscard]] Result<Reply> run(const Command& command, const EnterOptions& options = {}) const;

 private:
  friend class Resources;
  Claim(std::shared_ptr<Server> server, ResourceName resource, const RequestId& request,
        TokenNumber number)
      : server_(std::move(server)),
        resource_(std::move(resource)),
        request_(request),
        number_(number) {}

  std::shared_ptr<Server> server_;
  ResourceName resource_;
  RequestId request_;
  TokenNumber number_;  // which of the resource's claims it is
};

// The text of the script, for clients of other libraries. It changes only with its version. Also
// installed as share/leasehold/redis-fence.lua.
std::string_view fence_script();

}  // namespace leasehold::redis
