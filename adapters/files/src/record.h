// What the fence remembers of a resource, as it stands in the file "mark" beside the data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/fence_admin.h"
#include "leasehold/token.h"

namespace leasehold::files {

struct Entered {
  TokenNumber number;
  RequestId request;
  std::int64_t sequence = 0;  // of this holder's last write; 0: none
  bool operator==(const Entered&) const = default;
};

struct Record {
  std::optional<Lineage> lineage;    // the only one that may enter; none: the first to come
  std::optional<TokenNumber> least;  // adopted: the lowest token to let in
  std::optional<Entered> entered;
  std::int64_t refused = 0;
  std::string previous;  // the version that this one replaced, where it is kept for readers
  bool operator==(const Record&) const = default;

  // The number that an entering token is compared with; 0: none.
  std::int64_t threshold() const;
};

std::string to_text(const Record& record);
// Nothing unless it is a whole record of this version of the format.
std::optional<Record> record_from(std::string_view text);

FenceMark to_mark(const ResourceName& resource, const Record& record);

}  // namespace leasehold::files
