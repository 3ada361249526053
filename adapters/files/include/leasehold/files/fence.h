// The fence for a file or a folder on a local filesystem: refuses the stale holder under a lock of
// the kernel that covers both the check and the replacement.
//
// A fenced thing is never changed in place, it is replaced. A version is its data and its mark,
// side by side in the hidden folder ".leasehold" next to it. The ordinary path is a hard link
// (file) or a symbolic link (folder) to the data of the current version, so one rename moves data
// and mark together, and any program reads the ordinary path as ever.
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not
// with single entry); a token of another lineage is refused and never compared; the first token to
// enter decides the lineage. Of one holder's own writes, one with a sequence number that is not
// above the last one is refused.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/token.h"

namespace leasehold::files {

using leasehold::Access;
using leasehold::Entry;

enum class Filesystem {
  known_local,  // refuse every filesystem that is not known to be local
  vouched_for,  // the caller knows that one machine alone mounts it; those known to be of a
                // network are refused all the same
};

struct FenceOptions {
  // How long to wait for another writer. One that is frozen in the middle blocks the others until
  // it goes on or dies.
  std::chrono::milliseconds wait = std::chrono::seconds(10);
  std::stop_token stop = {};
  Filesystem filesystem = Filesystem::known_local;
};

struct WriteOptions {
  // Larger at each write of one holder; enter() tells the last one. None: the next number, so that
  // this write is not ordered against the holder's others.
  std::optional<std::int64_t> sequence = {};
  Entry entry = Entry::repeatable;
};

// Puts the fence around the file or folder at `path`, which must exist. Doing it again changes
// nothing. Where another program has replaced the file behind the fence's back, it takes the file
// as it is and keeps the mark. A folder is moved into the hidden one and a symbolic link takes its
// place, so do it while nobody uses that folder.
// Fails with
// - `invalid`: a wrong path (see Fence::open), or no regular file or folder, or one with further
//   hard links, which a replacement would leave behind.
// - `unsupported`: the filesystem is of a network, or not known to be local.
// - `unavailable`: it does not exist, cannot be written, or others kept it locked for too long.
// After a failure the data is where it was. If a folder's installation was killed in the middle,
// its ordinary path may be missing; installing again completes it.
[[nodiscard]] Status install_fence(const std::filesystem::path& path, FenceOptions options = {});

class Replacement;

// One fenced file or folder. A small value that may be copied; it keeps nothing open and caches
// nothing. Thread safe, also across processes and after fork(). Every call blocks on the disk and
// on other writers, the latter no longer than FenceOptions::wait.
//
// Every call may fail with
// - `fenced_out`: refused; error.refusal has both numbers. Nothing was changed but the count of
//   refusals, which is durable; if counting failed, error.store_words says so.
// - `unavailable`: the fence is not installed there, another program has replaced the file, another
//   writer kept the fence locked for too long, the disk is full or read-only, ... Nothing was
//   changed. Safe to repeat.
// - `cancelled`: the stop token was requested while it waited. Nothing was changed.
// - `invalid`: a call that does not fit: a folder read as a file, a wrong sequence number.
// A change is durable before its call returns.
class Fence {
 public:
  // Fails with `invalid` unless each part of the path is UTF-8 without control characters, and the
  // last one, which is the resource's name, has 1 to 255 bytes and is not ".", ".." or
  // ".leasehold"; `unsupported` if the filesystem is of a network or not known to be local;
  // `unavailable` if the fence is not installed.
  [[nodiscard]] static Result<Fence> open(const std::filesystem::path& path,
                                          FenceOptions options = {});

  const std::filesystem::path& path() const { return path_; }

  // Raises the mark. From then on nobody with a lower token reads or writes through the fence, so
  // what is read afterwards, by read() or by the ordinary path, stays true until this holder or a
  // later one writes. Gives the sequence number of this holder's last write, 0 if there is none.
  // With Access::read others who read may come in with lower tokens, and writers with higher ones;
  // `invalid` with Entry::single.
  [[nodiscard]] Result<std::int64_t> enter(const Token& token, Entry entry = Entry::repeatable,
                                           Access access = Access::write) const;

  // Enters, then reads the file: in this order, under the lock.
  [[nodiscard]] Result<std::string> read(const Token& token, Entry entry = Entry::repeatable,
                                         Access access = Access::write) const;

  // Enters and replaces the file's content in one step. Owner, mode, access list and user
  // attributes stay. Repeating a write with its sequence number and content is success.
  // Fails besides with `outcome_unknown` if the disk failed after the replacement was in place:
  // it can be read, but a power cut may undo it together with its mark.
  [[nodiscard]] Status write(const Token& token, std::string_view content,
                             const WriteOptions& options = {}) const;

  // Enters, reads, and replaces the content by what `change` makes of it, all under the lock: one
  // transaction. An error or an exception of `change` leaves everything as it was, the mark too,
  // and is passed on. `change` must not use this fence. Fails like write().
  template <class Change>
  requires std::convertible_to<std::invoke_result_t<Change&, std::string>, Result<std::string>>
  [[nodiscard]] Status update(const Token& token, Change&& change,
                              const WriteOptions& options = {}) const {
    return update_with(token, std::ref(change), options);
  }

  // A new version to be filled without keeping others out: for folders, and for files that are
  // large or come slowly.
  [[nodiscard]] Result<Replacement> stage() const;

  // What is remembered of this resource. Does not wait for writers.
  [[nodiscard]] Result<FenceMark> mark() const;

 private:
  using ChangeFunction = std::function<Result<std::string>(std::string)>;
  Fence(std::filesystem::path path, FenceOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}
  Status update_with(const Token& token, const ChangeFunction& change,
                     const WriteOptions& options) const;

  std::filesystem::path path_;
  FenceOptions options_;
};

// What shall replace a fenced file or folder. Move-only; dropped unless published. If its process
// dies, the next writer removes it. Not thread safe.
class Replacement {
 public:
  Replacement(Replacement&&) noexcept;
  Replacement& operator=(Replacement&&) noexcept;
  ~Replacement();

  // An empty file or folder, readable by its owner only, to be filled by any means: written to, or
  // replaced as a whole. A file gets the mode and owner of the one it replaces when it is
  // published; of a folder that is true for the folder itself, not for what is in it.
  const std::filesystem::path& path() const;

  // Enters the fence and puts it in place, in one step. Fails like Fence::write, but a repeated
  // sequence number is always refused. `invalid` if it is not, or no longer, a file or folder of
  // its own, was published before, or met a failing disk: then stage another one. It can be tried
  // again after `fenced_out`, and after `unavailable` unless that came from the disk.
  [[nodiscard]] Status publish(const Token& token, const WriteOptions& options = {});

 private:
  friend class Fence;
  struct State;
  explicit Replacement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The operator's part, for which there is `leasehold fence adopt`: lets `lineage` in from
// `at_least` on, and nobody else. `invalid` if that would lower the mark of the same lineage.
[[nodiscard]] Status adopt_lineage(const std::filesystem::path& path, const Lineage& lineage,
                                   TokenNumber at_least, FenceOptions options = {});

}  // namespace leasehold::files
