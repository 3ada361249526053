#include "cli/fence/data.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "kit/system/fd.h"
#include "kit/try.h"
#include "leasehold/files/adapter.h"

namespace leasehold::cli {
namespace {

Result<std::string> from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) return std::string(value);
  return fail(ErrorCode::invalid, std::string(name) +
                                      " is not set; run this in a command under `leasehold run "
                                      "NAME --fenced`");
}

Result<Token> token_of_this_holder() {
  const auto number = TRY(from_environment("LEASEHOLD_TOKEN"));
  const auto lineage = TRY(from_environment("LEASEHOLD_LINEAGE"));
  const auto request = TRY(from_environment("LEASEHOLD_REQUEST"));
  return Token::parse(number, lineage, request);
}

tl::unexpected<Error> cannot(const std::string& what, int error) {
  return fail(ErrorCode::unavailable, "cannot " + what, std::strerror(error));
}

Status copy_bytes(int from, int to, const std::string& source) {
  std::array<char, 1 << 16> chunk;
  for (;;) {
    const ssize_t count = ::read(from, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read " + source, errno);
    if (count == 0) return {};
    for (ssize_t done = 0; done < count;) {
      const ssize_t written =
          ::write(to, chunk.data() + done, static_cast<std::size_t>(count - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return cannot("write the new content", errno);
      done += written;
    }
  }
}

Status fill_file(const std::filesystem::path& path, const std::optional<std::string>& from) {
  const kit::Fd given(from ? open(from->c_str(), O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO));
  if (!given) return cannot("open " + from.value_or("the standard input"), errno);
  const kit::Fd file(open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return cannot("write the new content", errno);
  return copy_bytes(given.get(), file.get(), from.value_or("the standard input"));
}

Status fill_folder(const std::filesystem::path& path, const std::optional<std::string>& from) {
  if (!from) {
    return fail(ErrorCode::invalid, "this is a folder: name the one to copy with --from");
  }
  using std::filesystem::copy_options;
  std::error_code error;
  std::filesystem::copy(*from, path, copy_options::recursive | copy_options::copy_symlinks, error);
  if (error) return fail(ErrorCode::unavailable, "cannot copy " + *from, error.message());
  return {};
}

}  // namespace

void FenceData::declare(Arguments& fence) {
  enter_ = &fence.subcommand("enter", "Enter a file's fence, before reading it");
  enter_->description(
      "Raises the mark of a fenced file or folder to the token of this holder, which 'leasehold "
      "run --fenced' has put into the environment. From then on no earlier holder can write. "
      "Prints the sequence number of this holder's last write, 0 if there is none.");
  declare_common(*enter_);
  declare_single_entry(*enter_);
  declare_shared(*enter_);
  enter_->example("leasehold fence enter file:/srv/site && grep -r TODO /srv/site",
                  "read a folder that no earlier holder can change any more");

  read_ = &fence.subcommand("read", "Enter a file's fence and print the file");
  declare_common(*read_);
  declare_shared(*read_);
  read_->example("leasehold fence read file:/srv/app/total", "enter, then read");

  write_ = &fence.subcommand("write", "Replace a fenced file or folder");
  write_->description(
      "Replaces the file by the standard input, or by a copy of what --from names, if the token of "
      "this holder may enter the fence. Readers see the old content or the new one. The input is "
      "read to its end first: of a command that fails half-way, what it had printed is written.");
  declare_common(*write_);
  write_->option("--from", "PATH", from_,
                 "A file or folder to copy, instead of the standard input");
  write_->number("--sequence", sequence_,
                 "Larger at each write of this holder, so that a delayed one is refused",
                 {1, kAnyNumber.most});
  declare_single_entry(*write_);
  write_->example("leasehold fence write file:/srv/app/total < total.new",
                  "refused with exit status 76 if another holder has entered since");
}

void FenceData::declare_common(Arguments& arguments) {
  arguments.positional("URL", url_, "The fenced file or folder, as in file:/srv/app/total");
  arguments.duration("--wait", wait_, "How long to wait for another writer");
}

void FenceData::declare_single_entry(Arguments& arguments) {
  arguments.flag("--single-entry", single_entry_, "Refuse a token that has entered before");
}

void FenceData::declare_shared(Arguments& arguments) {
  arguments.flag("--shared", shared_,
                 "Enter only to read, beside others who do: as after 'leasehold run --shared'");
}

bool FenceData::chosen() const {
  return enter_->chosen() || read_->chosen() || write_->chosen();
}

files::Entry FenceData::entry() const {
  return single_entry_ ? files::Entry::single : files::Entry::repeatable;
}

files::Access FenceData::access() const {
  return shared_ ? files::Access::read : files::Access::write;
}

ExitStatus FenceData::execute() const {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then told as any other error
  const auto token = token_of_this_holder();
  if (!token) return report(token.error());
  const auto fence = files::open_fence(url_, wait_);
  if (!fence) return report(fence.error());
  if (enter_->chosen()) return enter(*fence, *token);
  if (read_->chosen()) return read(*fence, *token);
  return write(*fence, *token);
}

ExitStatus FenceData::enter(const files::Fence& fence, const Token& token) const {
  const auto last = fence.enter(token, entry(), access());
  if (!last) return report_at(url_, last.error());
  return print(std::to_string(*last) + "\n");
}

ExitStatus FenceData::read(const files::Fence& fence, const Token& token) const {
  const auto content = fence.read(token, files::Entry::repeatable, access());
  if (!content) return report_at(url_, content.error());
  return print(*content);
}

ExitStatus FenceData::write(const files::Fence& fence, const Token& token) const {
  auto next = fence.stage();
  if (!next) return report(next.error());
  const auto fill = std::filesystem::is_directory(next->path()) ? fill_folder : fill_file;
  if (const auto ok = fill(next->path(), from_); !ok) return report(ok.error());
  const auto done = next->publish(token, {.sequence = sequence_, .entry = entry()});
  return done ? ExitStatus::done : report_at(url_, done.error());
}

}  // namespace leasehold::cli
