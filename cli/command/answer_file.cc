#include "cli/command/answer_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace leasehold::cli {
namespace {

Error cannot_write(const std::string& file) {
  return {ErrorCode::outcome_unknown, "cannot write '" + file + "'",
          std::generic_category().message(errno)};
}

}  // namespace

Result<AnswerFile> AnswerFile::open(const std::string& name) {
  process::Fd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) return fail(cannot_write(name));
  return AnswerFile(name, std::move(fd));
}

Status AnswerFile::write(const std::string& text) {
  // A device or a pipe cannot be cut, and need not.
  const bool cut = ftruncate(fd_.get(), 0) == 0 || errno == EINVAL;
  if (cut && process::write_all(fd_.get(), text)) return {};
  return fail(cannot_write(name_));
}

}  // namespace leasehold::cli
