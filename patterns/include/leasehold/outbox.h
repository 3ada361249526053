// The transactional outbox: messages that are written in the transaction of the work they tell
// about, and relayed afterwards. What is committed is sent, what is rolled back is not.
//
// Every message has a key. Messages of one key are relayed in the order of their commits, each at
// least once; different keys do not wait for one another. A receiver knows a repeat by the
// idempotency key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/store.h"
#include "leasehold/time.h"
#include "leasehold/token.h"

namespace leasehold {

inline constexpr std::size_t kMaxOutboxPayload = std::size_t(1) << 20;  // bytes

// The resource whose fence guards the marks of an outbox.
inline constexpr const char* kOutboxResource = "leasehold/outbox";

// What a program puts in. Key, topic and idempotency key: 1 to 512 bytes of UTF-8 without control
// characters.
struct OutboxEntry {
  std::string key;                             // what must stay in order: "order/1234"
  std::string topic;                           // what it is about: "payment.received"
  std::string payload;                         // at most 1 MiB
  std::optional<std::string> idempotency_key;  // unique in the outbox; default: a random one
};

// `invalid`, naming the field and the limit.
[[nodiscard]] Status check(const OutboxEntry& entry);

struct OutboxMessage {
  std::int64_t id = 0;  // grows with the commits of one key
  std::string key;
  std::string topic;
  std::string payload;
  std::string idempotency_key;
  std::int64_t attempts = 0;  // failures that were counted
};

// A message that failed too often. Its key waits until an operator says retry or skip.
struct OutboxProblem {
  OutboxMessage message;  // without the payload
  std::string last_error;
  std::int64_t behind = 0;  // messages of the key that wait for it
};

struct OutboxStatus {
  std::int64_t waiting = 0;    // neither delivered nor skipped
  std::int64_t delivered = 0;  // and not yet forgotten
  std::int64_t skipped = 0;    // likewise
  Millis lag{0};               // age of the oldest that waits; set-aside keys are left out
  std::vector<OutboxProblem> set_aside;
};

// The relay's and the operator's view of the outbox in one database. Every call blocks on the
// database, at most as long as its own timeouts say; not thread safe. After a failure nothing has
// changed, except after `outcome_unknown`.
//
// Calls with a token enter the fence of kOutboxResource in the transaction that writes: a relay
// that was overtaken is `fenced_out`, can mark nothing, and the refusal is counted.
class Outbox {
 public:
  static constexpr std::string_view kOffer = "outbox";
  virtual ~Outbox() = default;

  // Creates the outbox, and the fence of the database if it is missing. Again: changes nothing.
  [[nodiscard]] virtual Status install() = 0;

  // Raises the mark. From then on every older relay is refused; so do it before next().
  [[nodiscard]] virtual Status enter(const Token& token) = 0;

  // What waits, in order of id, without the keys that are set aside and without `except`, which
  // may be many. Of each key there is an unbroken beginning. With `after` only what has a higher
  // id, and nothing of a key of which something waits up to there: so a search goes on from where
  // it was, and a key stays in order.
  [[nodiscard]] virtual Result<std::vector<OutboxMessage>> next(
      int limit, const std::vector<std::string>& except, std::int64_t after = 0) = 0;

  // One that next() gave; nothing if it does not wait any more, or its key is set aside.
  [[nodiscard]] virtual Result<std::optional<OutboxMessage>> find(std::int64_t id) = 0;

  // `invalid` if it does not wait any more.
  [[nodiscard]] virtual Status delivered(const Token& token, std::int64_t id) = 0;

  // Counts a failure; true: it was number `attempts`, and the message is set aside now. `why` may
  // be anything: what no text can hold is kept as \xNN, and of more than 8 KiB the beginning.
  [[nodiscard]] virtual Result<bool> failed(const Token& token, std::int64_t id,
                                            const std::string& why, int attempts) = 0;

  // Deletes what was delivered or skipped so long ago, 2000 at most; how many.
  [[nodiscard]] virtual Result<std::int64_t> forget(const Token& token, Millis age) = 0;

  [[nodiscard]] virtual Result<OutboxStatus> status() = 0;

  // For the operator. `invalid` if the message is not set aside.
  [[nodiscard]] virtual Status retry(std::int64_t id) = 0;
  [[nodiscard]] virtual Status skip(std::int64_t id) = 0;  // never sent; the key goes on behind it
};

struct Delivery {
  const Token& token;  // the relay's, for a receiver with a fence of its own
  CallContext context;
};

// Where messages go.
class OutboxTarget {
 public:
  static constexpr std::string_view kOffer = "place to send messages to";
  virtual ~OutboxTarget() = default;

  // Blocks until the message has arrived for sure. `unavailable` and `outcome_unknown`: not now;
  // it is tried again and not counted. Any other failure is the message's own, and counted.
  [[nodiscard]] virtual Status deliver(const OutboxMessage& message, const Delivery& delivery) = 0;
};

}  // namespace leasehold
