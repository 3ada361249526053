// File descriptors as values, and waiting for them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kit/system/fd.h"
#include "leasehold/time.h"

namespace leasehold::process {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;  // none: for ever

inline Deadline within(std::chrono::nanoseconds span) {
  return std::chrono::steady_clock::now() + leasehold::detail::within_reason(span);
}

using kit::Fd;

struct Pipe {
  Fd read;
  Fd write;
};

// Both ends close on exec and are above the three standard descriptors, so that a child can be
// given them without clobbering one another. Throws std::system_error without descriptors.
Pipe make_pipe();

// True when `fd` can be read (or has hung up) before the deadline.
bool wait_readable(int fd, Deadline deadline = {});

// Reads until `text` was seen, the end of the stream, or the deadline; gives all that was read.
std::string read_until(int fd, std::string_view text, Deadline deadline = {});

// Reads to the end of the stream, or until the deadline.
std::string read_all(int fd, Deadline deadline = {});

// False if the other side has gone.
bool write_all(int fd, std::string_view text);

enum class Written {
  all,
  not_in_time,  // nobody has made room for all of it
  failed,       // nobody ever will: the other side has gone, or there is nowhere to write to
};
// Writes to a pipe, terminal or socket without waiting longer than the deadline for somebody to
// read it. Does not change `fd` for others who share it.
Written write_within(int fd, std::string_view text, Deadline deadline);

}  // namespace leasehold::process
