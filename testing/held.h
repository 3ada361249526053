// A lease with its token where the store gives one: what a test of any store can take.
#pragma once

#include <optional>
#include <string_view>

#include "leasehold/client.h"

namespace leasehold::testing {

struct Held {
  Lease lease;
  std::optional<Token> token;  // none: the store's guarantee is efficiency

  std::int64_t number() const { return token ? token->number.value() : 0; }
};

inline Result<Held> take(Client& client, std::string_view lock, AcquireOptions options = {}) {
  if (client.store().guarantee != Guarantee::correctness) {
    auto lease = client.acquire(lock, std::move(options));
    if (!lease) return fail(std::move(lease.error()));
    return Held{std::move(*lease), std::nullopt};
  }
  auto lease = client.acquire_fenced(lock, std::move(options));
  if (!lease) return fail(std::move(lease.error()));
  Token token = lease->token();
  return Held{std::move(static_cast<Lease&>(*lease)), std::move(token)};
}

}  // namespace leasehold::testing
