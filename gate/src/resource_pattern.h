// Which resource a path speaks of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "head.h"
#include "leasehold/error.h"
#include "leasehold/name.h"

namespace leasehold::gate {

enum class EncodedSlash { refused, part_of_the_name };

// "/accounts/{resource}": `{resource}` takes one segment, `*` passes over one, a word stands for
// itself; whatever follows is free. Several `{resource}` are joined by slashes.
class ResourcePattern {
 public:
  // Fails with `invalid`.
  [[nodiscard]] static Result<ResourcePattern> parse(std::string_view text);

  // Fails with 404 if the target does not fit, 400 if an upstream might read it as another path:
  // empty or dot segments, parameters (";"), encoded slashes; or if the name is not a good one.
  [[nodiscard]] Parsed<ResourceName> find(std::string_view target, EncodedSlash slashes) const;

 private:
  enum class Kind { literal, any, resource };
  struct Segment {
    Kind kind;
    std::string literal;
  };
  std::vector<Segment> segments_;
  std::string text_;
};

// Checks the target of a request as find() does.
[[nodiscard]] Parsed<void> check_target(std::string_view target, EncodedSlash slashes);

}  // namespace leasehold::gate
