// A mark as a text, for resources that keep texts. People and other programs may read it:
//
//   leasehold-fence 2
//   lineage <store id>/<lock>
//   least <number>            adopted, and nobody has entered since
//   floor <number>            marks up to it were swept
//   token <number>            who has entered last, with
//   request <request id>
//   sequence <number>           its last numbered write, and
//   write <word>                the name of its last write
//   read-token <number>       the highest that has entered to read beside others, with
//   read-request <request id>
//   end
//
// Lines that do not apply are left out. A resource may add lines of its own before the last one.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "fence/mark.h"
#include "leasehold/error.h"

namespace leasehold::fence {

// Lines of a key, a space and a value.
using Lines = std::map<std::string, std::string, std::less<>>;

struct Record {
  Mark mark;
  Lines own = {};  // of the resource that keeps it
};

std::string to_text(const Mark& mark, const Lines& own = {});

// `unavailable` unless it is a whole record of this version, with no other lines than those whose
// keys are `own`. `remove` is how this mark is deleted, for the sentence about an earlier version.
[[nodiscard]] Result<Record> read_record(const ResourceName& resource, std::string_view text,
                                         std::string_view remove,
                                         std::initializer_list<std::string_view> own = {});

}  // namespace leasehold::fence
