// What the fence remembers of a resource, as it stands in the file "mark" beside the data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fence/mark.h"
#include "leasehold/error.h"

namespace leasehold::files {

struct Record {
  fence::Mark mark = {};
  std::int64_t refused = 0;
  std::string previous = {};  // the version that this one replaced, where it is kept for readers
  bool operator==(const Record&) const = default;
};

std::string to_text(const Record& record);
// `unavailable` unless it is a whole record of this version of the format; `remove` as for
// fence::read_record().
[[nodiscard]] Result<Record> record_from(const ResourceName& resource, std::string_view text,
                                         std::string_view remove);

}  // namespace leasehold::files
