// Each operation as a call of a script, and what the answer means; for one server or many.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "keys.h"
#include "leasehold/resp/value.h"
#include "leasehold/store.h"
#include "script.h"

namespace leasehold::redis {

// Where a waiter is told to ask again; '-': nowhere.
inline constexpr const char* kNoChannel = "-";

// `store`: as far as is known; see read_acquire().
ScriptCall acquire_call(const LockKeys& keys, const AcquireCall& call, bool queue,
                        const std::string& channel, const std::optional<StoreId>& store,
                        std::int64_t number);
ScriptCall renew_call(const std::string& prefix, const std::vector<RenewCall>& calls);
// `doubtful`: an acquire with a lower number may still be on its way, and must find it released.
ScriptCall release_call(const LockKeys& keys, const ReleaseCall& call, bool doubtful,
                        std::int64_t number);
// For many at once, which have one number; see many_lua.h for what they leave undone.
ScriptCall acquire_many_call(const std::optional<StoreId>& store, std::int64_t number);
void add_acquire(ScriptCall& many, LockKeys keys, const AcquireCall& call);
ScriptCall release_many_call(std::int64_t number);
void add_release(ScriptCall& many, LockKeys keys, const ReleaseCall& call);
ScriptCall force_release_call(const LockKeys& keys, const RequestId& seen);
ScriptCall set_permits_call(const LockKeys& keys, std::optional<std::int64_t> permits);
ScriptCall inspect_call(const LockKeys& keys);
ScriptCall record_call(const LockKeys& keys, const RequestId& request, const std::string& key,
                       const OnceRecord& what);
ScriptCall begin_call(const StoreId& new_store);
ScriptCall rotate_call(const StoreId& id);
// Answers the id, or an empty text if the store was not begun yet.
ScriptCall look_call();
std::string recall_command(const LockKeys& keys, const std::string& key);
std::string list_keys_command(const LockKeys& keys);
std::string forget_command(const LockKeys& keys, const std::string& key);

// The value of the key of a lock that one has alone.
struct LockValue {
  std::optional<RequestId> request;  // none: another program's
  std::optional<TokenNumber> token;
  std::optional<StoreId> store;
  std::int64_t since = 0;  // milliseconds; negative: -TTL, which still has its first end
  bool kept = false;
  std::string owner;
  std::string note;

  static LockValue parse(std::string_view text);
};

// These fail with `outcome_unknown` if the server answers what it never should.
[[nodiscard]] Status check_count(const resp::Value& reply, std::size_t count);
// `store` is what was sent, and where a grant comes from that does not say.
[[nodiscard]] Result<AcquireReply> read_acquire(const resp::Value& reply, const AcquireCall& call,
                                                const std::optional<StoreId>& store);
[[nodiscard]] bool is_grant(const resp::Value& acquire_reply);
[[nodiscard]] Result<std::vector<RenewReply>> read_renew(const resp::Value& reply,
                                                         std::size_t count);
[[nodiscard]] Result<ReleaseReply> read_release(const resp::Value& reply);
[[nodiscard]] Status read_set_permits(const resp::Value& reply, const LockName& lock);
[[nodiscard]] Result<LockStatus> read_status(const resp::Value& reply, const LockName& lock,
                                             const LockKeys& keys);
[[nodiscard]] Result<std::optional<OnceRecord>> read_recall(const resp::Value& reply);
[[nodiscard]] Result<std::vector<std::string>> read_keys(const resp::Value& reply);
[[nodiscard]] Result<StoreId> read_store(const resp::Value& reply);

}  // namespace leasehold::redis
