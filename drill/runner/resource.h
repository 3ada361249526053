// What the workers of a drill fight over: a number that is read and replaced, behind a fence.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/token.h"

namespace leasehold::drill {

// What a holder shows at the fence: a token, or only its request id where the store has no tokens.
struct Pass {
  std::optional<Token> token;
  RequestId request;
  std::uint32_t sequence = 1;  // of the next write with it
};

enum class Fencing {
  token,  // refuses a lower token
  claim,  // refuses who was taken over from
  none,   // refuses nobody
};

// One number, 0 at first. Not thread safe; calls block. Every call may fail with
// - `fenced_out`: refused, and nothing changed.
// - anything else: whether it was done is not known to the drill. The same call may be repeated.
class Resource {
 public:
  virtual ~Resource() = default;

  // Enters (or claims), then reads. What is read was there while nobody else had entered.
  [[nodiscard]] virtual Result<std::uint64_t> enter(const Pass& pass) = 0;
  // Replaces the number, in one step with the check. After enter() with the same pass.
  [[nodiscard]] virtual Status write(const Pass& pass, std::uint64_t value) = 0;
  // Reads without a check: for after the drill.
  [[nodiscard]] virtual Result<std::uint64_t> peek() = 0;
};

struct ResourceChoice {
  std::string url;
  std::string name;  // of the lock that guards it
  Fencing fencing = Fencing::token;
  bool create = false;  // makes what it needs, before any worker opens it
};

// Opens the resource that the URL names. Fails with `invalid`, `unsupported` or `unavailable`.
[[nodiscard]] Result<std::unique_ptr<Resource>> open_resource(const ResourceChoice& choice);

}  // namespace leasehold::drill
