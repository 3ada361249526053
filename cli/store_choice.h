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

// The URL of --store, else $LEASEHOLD_STORE, else of the embedded store in the user's state folder,
// which is created (0700).
[[nodiscard]] Result<std::string> chosen_store(const std::optional<std::string>& given);

// Opens --store, else $LEASEHOLD_STORE, else the embedded store in the user's state folder, which
// is created (0700) on first use.
[[nodiscard]] Result<Client> open_store(const std::optional<std::string>& given,
                                        ConnectOptions options = {});

// The same for a subcommand that looks at a store and takes no lock: a file that was named and is
// not there is a mistake.
[[nodiscard]] Result<Client> open_existing_store(const std::optional<std::string>& given);

}  // namespace leasehold::cli
