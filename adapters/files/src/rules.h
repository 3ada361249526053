// Who may enter: the rules of a fence, without any file.
#pragma once

#include <optional>
#include <variant>

#include "leasehold/files/fence.h"
#include "record.h"

namespace leasehold::files {

struct Attempt {
  const Token& token;
  Entry entry = Entry::repeatable;
  bool writes = false;
  std::optional<std::int64_t> sequence = {};  // of a write
};

struct Admitted {
  Record record;  // what to remember if it is carried out
};
struct Refused {
  Error error;
  // The holder's last write has this very sequence number: perhaps it is the same write again.
  bool same_sequence = false;
};
using Verdict = std::variant<Admitted, Refused>;

Verdict judge(const ResourceName& resource, const Record& record, const Attempt& attempt);

// Fails with `invalid` if it would lower the mark.
[[nodiscard]] Result<Record> adopted(const ResourceName& resource, const Record& record,
                                     const Lineage& lineage, TokenNumber at_least);

}  // namespace leasehold::files
