// System calls on files, with errors as values. Every name is one part, relative to an open folder;
// no symbolic link is ever followed.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kit/system/fd.h"
#include "leasehold/error.h"

namespace leasehold::files {

using kit::Fd;

// `unavailable`, with what the system says and what that means here.
Error disk_error(const std::string& what, int error);

// `what` begins the sentence of a failure: "cannot open /srv/app". Here and below.
[[nodiscard]] Result<Fd> open_folder(int at, const std::string& name, const std::string& what);
// A regular file, for reading; a pipe or a device is refused without waiting for it.
[[nodiscard]] Result<Fd> open_file(int at, const std::string& name, const std::string& what);

[[nodiscard]] Result<struct stat> status_of(int fd, const std::string& what);
// Nothing if there is no such name. Describes a symbolic link, not what it points to.
[[nodiscard]] Result<std::optional<struct stat>> status_at(int at, const std::string& name,
                                                           const std::string& what);
bool same_file(const struct stat& one, const struct stat& other);

[[nodiscard]] Result<std::string> read_whole(int fd, const std::string& what);
[[nodiscard]] Result<bool> same_content(int one, int other, const std::string& what);
[[nodiscard]] Result<std::string> target_of_link(int at, const std::string& name,
                                                 const std::string& what);

// A new file with this content, synced; replaces a file of that name.
[[nodiscard]] Status write_file(int at, const std::string& name, mode_t mode,
                                std::string_view content, const std::string& what);
[[nodiscard]] Status write_whole(int fd, std::string_view content, const std::string& what);

[[nodiscard]] Status sync(int fd, const std::string& what);
// A file, or a folder with everything below it; of another kind: nothing to do.
[[nodiscard]] Status sync_entry(int at, const std::string& name, const std::string& what);
// Every file and folder below `folder`, and itself.
[[nodiscard]] Status sync_tree(int folder, const std::string& what);

// The names in a folder, without "." and "..".
[[nodiscard]] Result<std::vector<std::string>> names_in(int folder, const std::string& what);

// As much of it as can be; what cannot stays.
void remove_tree(int at, const std::string& name);

// Gives `to` the owner, mode, access list and user attributes of `from`.
[[nodiscard]] Status copy_attributes(int from, int to, const std::string& what);

}  // namespace leasehold::files
