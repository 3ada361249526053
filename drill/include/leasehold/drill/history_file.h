// Histories on disk: text, one record a line, columns parted by tabs, "-" for what is not said.
//
//   history  1  BOOT  PROCESS                     before the first record of each process
//   INDEX  TIME  PROCESS  KIND  OPERATION  LOCK  TOKEN  REQUEST  SEQUENCE  DEADLINE  VALUE  BASE
//          STORE  EPOCH  [MODE  SLOT]
//
// MODE is "shared" or how many permits there are, and SLOT which of them it is; a record without
// them is exclusive.
//
// Times are nanoseconds on the boot clock, so BOOT names the boot: only histories of the same boot
// can be merged. Many processes may write into one file, or into one each.
#pragma once

#include <string>
#include <string_view>

#include "kit/system/fd.h"
#include "leasehold/drill/history.h"

namespace leasehold::drill {

// The kernel's name for this boot of this machine; "unknown" where there is none.
std::string current_boot();

// What one process writes while it runs. Not thread safe: one writer per thread, each with a
// process name of its own.
class HistoryWriter {
 public:
  // Opens for appending, makes the file if there is none, and writes the process's first line.
  // Fails with `invalid` for a name that is empty, "-" or has a control character, `unavailable`
  // with the system's words if the file cannot be written.
  [[nodiscard]] static Result<HistoryWriter> open(const std::string& path, std::string_view process,
                                                  std::string_view boot);

  // The names of one record; see Record for the rest. Empty or absent: not said.
  struct Names {
    std::string_view lock = {};
    std::optional<RequestId> request = {};
    std::optional<StoreId> store = {};
  };

  // Appends in one system call, so that neither another writer nor SIGKILL can tear the line.
  // Takes everything but index, process and references from `record`. Blocks on the file. Fails
  // with `unavailable`; the line may then be torn, and nothing more must be written.
  [[nodiscard]] Status write(const Record& record, const Names& names);

 private:
  HistoryWriter(kit::Fd file, std::string process)
      : file_(std::move(file)), process_(std::move(process)) {}
  Status write_all(std::string_view line);

  kit::Fd file_;
  std::string process_;
  std::uint32_t index_ = 0;
  std::string line_;
};

// Writes a whole history as if its processes had. Fails with `unavailable`.
[[nodiscard]] Status save_history(const History& history, const std::string& path,
                                  std::string_view boot);

// Reads files into one history, and remembers whose clock they share.
class HistoryReader {
 public:
  // Adds the records of a file. Fails with `unavailable` if it cannot be read, with `invalid` for
  // the first line that is not as above: "FILE:LINE: " and what is wrong with it. History and
  // reader must not be used after a failure.
  [[nodiscard]] Status read(const std::string& path);

  // Merged by time. The reader is empty afterwards.
  History take();

 private:
  History history_;
  std::string boot_;
  std::vector<std::uint32_t> next_index_;  // by process; 0: not declared
};

}  // namespace leasehold::drill
