// What a fence remembers of one resource.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "leasehold/fence_admin.h"
#include "leasehold/token.h"

namespace leasehold::fence {

struct Mark {
  // Who has entered last, to write or perhaps to write.
  struct Holder {
    TokenNumber number;
    RequestId request;
    std::int64_t sequence = 0;  // of its last numbered write; 0: none
    std::string write = {};     // names its last write; empty: that has no name
    bool operator==(const Holder&) const = default;
  };
  // The highest of those who have entered to read beside others, while it is above the holder.
  struct Reader {
    TokenNumber number;
    RequestId request;
    bool operator==(const Reader&) const = default;
  };

  std::optional<Lineage> lineage = {};    // the only one that may enter; none: the first to come
  std::optional<TokenNumber> least = {};  // adopted: the lowest number to let in
  std::int64_t floor = 0;  // numbers up to it belong to marks that were swept; 0: none
  std::optional<Holder> holder = {};
  std::optional<Reader> reader = {};
  bool knows_store = true;  // false: marks were swept, and none of this token's store was known
  bool operator==(const Mark&) const = default;

  // The number that a token is compared with that enters to write; 0: none.
  std::int64_t threshold() const;
  // Whether this very grant has entered last.
  bool is_held_by(const Token& token) const;

  // As an operator sees it.
  FenceMark shown(const ResourceName& resource, std::int64_t refused) const;
};

}  // namespace leasehold::fence
