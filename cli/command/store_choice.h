// Which store a subcommand talks to.
#pragma once

#include <optional>
#include <string>

#include "leasehold/client.h"

namespace leasehold::cli {

class Arguments;

// The URL of the embedded store in the file `path`.
std::string sqlite_url(const std::string& path);

// For who makes a store of its own and removes it again, before it has threads: such a file is seen
// by no other machine, so one without a machine id, as many containers are, may use it. Processes
// that are started from now on may, too.
void do_without_machine_id();

// Declares --store.
void declare_store(Arguments& arguments, std::optional<std::string>& into);

// The URL of --store, else $LEASEHOLD_STORE, else of the embedded store in the user's state folder.
// Nothing is created.
[[nodiscard]] Result<std::string> chosen_store(const std::optional<std::string>& given);

// The default store is meant, and nobody has taken a lock in it yet: it is as good as empty.
bool is_not_there_yet(const std::optional<std::string>& given);

// `unavailable`, for what cannot be done with a default store that is not there yet.
Error not_there_yet();

// Says so if the store that went wrong was named by $LEASEHOLD_STORE.
Error with_source(const std::optional<std::string>& given, Error error);

// The name of a lock that is to be taken. `invalid` also for a store's URL, which was to be
// --store, and for one with a password, which would be shown to all who look at the locks.
[[nodiscard]] Result<LockName> chosen_lock(const std::string& given);

// Opens the chosen store. The folder of the default store is created (0700) on first use.
[[nodiscard]] Result<Client> open_store(const std::optional<std::string>& given,
                                        ConnectOptions options = {});

// The same, but a store with servers that cannot be reached is tried again for `wait`; one line
// says so. `wait` is then what is left of it.
[[nodiscard]] Result<Client> await_store(const std::optional<std::string>& given,
                                         const ConnectOptions& options, Millis& wait);

// For a subcommand that looks at a store and takes no lock: a file that is not there is a mistake.
[[nodiscard]] Result<Client> open_existing_store(const std::optional<std::string>& given);

}  // namespace leasehold::cli
