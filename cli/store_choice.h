// Which store a subcommand talks to.
#pragma once

#include <optional>
#include <string>

#include "leasehold/client.h"

namespace leasehold::cli {

class Arguments;

// The URL of the embedded store in the file `path`.
std::string sqlite_url(const std::string& path);

// Declares --store.
void declare_store(Arguments& arguments, std::optional<std::string>& into);

// Opens --store, else $LEASEHOLD_STORE, else the embedded store in the user's state folder, which
// is created (0700) on first use.
[[nodiscard]] Result<Client> open_store(const std::optional<std::string>& given,
                                        ConnectOptions options = {});

}  // namespace leasehold::cli
