#include "testing/fence_conformance.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "kit/system/fd.h"
#include "leasehold/files/fence.h"
#include "visits.h"

namespace leasehold::testing {
namespace {

using files::Entry;
using files::Fence;
using files::FenceOptions;

constexpr std::size_t kLongestPart = 200;

Entry entry_of(EntryMode mode) {
  return mode == EntryMode::single ? Entry::single : Entry::repeatable;
}

// A name that the suite uses and a filesystem cannot: with a slash, or longer than a file's name.
bool needs_escape(std::string_view name) {
  return name.find('/') != std::string_view::npos || (name.size() > 255 && name.size() <= 512);
}

// "a/b" is the file "b" in the folder "+a"; a long name is cut into parts.
std::filesystem::path escaped(std::string_view name) {
  std::filesystem::path path;
  std::string part;
  for (const char c : name) {
    if (c == '/' || part.size() == kLongestPart) {
      path /= "+" + part;
      part = c == '/' ? "/" : "";
      if (c == '/') part.clear();
    }
    if (c != '/') part += c;
  }
  return path / ("=" + part);
}

std::string unescaped(const std::filesystem::path& path) {
  std::string name;
  for (const std::filesystem::path& part : path) {
    const std::string text = part.native();
    if (text.front() == '+') {
      name += text.substr(1);
      if (text.size() <= kLongestPart) name += '/';
    } else {
      name += text.front() == '=' ? text.substr(1) : text;
    }
  }
  return name;
}

class FilesConnection final : public FenceConnection {
 public:
  explicit FilesConnection(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    const auto fence = open(resource);
    if (!fence) return fail(fence.error());
    return fence->read(token, entry_of(mode));
  }

  Result<std::string> read_beside(std::string_view resource, const Token& token) override {
    const auto fence = open(resource);
    if (!fence) return fail(fence.error());
    return fence->read(token, Entry::repeatable, Access::read);
  }

  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t sequence) override {
    const auto fence = open(resource);
    if (!fence) return fail(fence.error());
    files::WriteOptions options{.entry = entry_of(mode)};
    if (sequence != 0) options.sequence = sequence;
    return fence->write(token, value, options);
  }

  Status update(std::string_view resource, const Token& token, const Change& change) override {
    const auto fence = open(resource);
    if (!fence) return fail(fence.error());
    return fence->update(token, change);
  }

  Result<std::string> peek(std::string_view resource) override {
    return files::read_text(path_of(resource));
  }

  Result<std::vector<FenceMark>> marks() override {
    std::vector<FenceMark> all;
    for (const auto& item : std::filesystem::recursive_directory_iterator(folder_)) {
      if (!item.is_regular_file()) continue;
      const auto inner = std::filesystem::relative(item.path(), folder_);
      if (inner.native().find(".leasehold") != std::string::npos) continue;
      auto mark = Fence::open(item.path())->mark();
      if (!mark) return fail(std::move(mark.error()));
      mark->resource = ResourceName::parse(unescaped(inner)).value();
      all.push_back(std::move(*mark));
    }
    return all;
  }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    const auto fence = open(resource.str());
    if (!fence) return fail(fence.error());
    return files::adopt_lineage(fence->path(), lineage, at_least, kPatient);
  }

 private:
  static inline const FenceOptions kPatient = {.wait = std::chrono::milliseconds::max()};

  std::filesystem::path path_of(std::string_view resource) const {
    return folder_ / (needs_escape(resource) ? escaped(resource) : std::filesystem::path(resource));
  }

  // Installs the fence at the first use of a resource, around an empty file.
  Result<Fence> open(std::string_view resource) const {
    const std::filesystem::path path = path_of(resource);
    if (auto fence = Fence::open(path, kPatient);
        fence || fence.error().code == ErrorCode::invalid) {
      return fence;
    }
    std::filesystem::create_directories(path.parent_path());
    files::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (auto ok = files::install_fence(path, kPatient); !ok) return fail(std::move(ok.error()));
    return Fence::open(path, kPatient);
  }

  std::filesystem::path folder_;
};

class FilesFence final : public FenceUnderTest {
 public:
  explicit FilesFence(const std::string& base) : scratch_(base) {}

  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<FilesConnection>(scratch_.path());
  }
  void restart() override {}  // the files are all there is
  bool update_is_one_transaction() const override { return true; }
  FenceWays ways() const override {
    return {.numbers = true, .compares = true, .numbers_itself = true, .readers = true};
  }

 private:
  rig::TempFolder scratch_;
};

FenceCase in_folder(const std::string& name, const std::string& base) {
  return {name, [base] { return std::make_unique<FilesFence>(base); }};
}

INSTANTIATE_TEST_SUITE_P(Files, FenceConformance,
                         ::testing::Values(in_folder("disk", "/var/tmp"),
                                           in_folder("tmpfs", "/dev/shm")),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
