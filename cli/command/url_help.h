// Which URLs there are, for help and completion: what the technologies of this build say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leasehold/technology.h"

namespace leasehold::cli {

// "postgres://user@host/db or sqlite:/var/lib/app/app.db": one of each kind that can be used so.
std::string example_urls(std::string_view use);

// How they begin: "postgres://", "postgresql://", "sqlite:".
std::vector<std::string> url_beginnings(std::string_view use);

// Whether a technology of this build has URLs that begin like this one and can be used so.
bool can_be_used(const std::string& url, std::string_view use);

}  // namespace leasehold::cli
