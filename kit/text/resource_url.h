// The URL of a resource that a program opens by itself, past the registry.
#pragma once

#include <initializer_list>
#include <string_view>

#include "leasehold/url.h"

namespace leasehold::kit {

// Reads the URL and its secrets. `invalid` unless its scheme is one of these; `place` begins that
// sentence: "values in etcd are at an etcd:// URL".
[[nodiscard]] Result<Url> resource_url(std::string_view text,
                                       std::initializer_list<std::string_view> schemes,
                                       std::string_view place);

}  // namespace leasehold::kit
