#include "vault.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <tuple>
#include <utility>

#include "filesystem_kind.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/id.h"
#include "leasehold/random.h"
#include "leasehold/time.h"

namespace leasehold::files {
namespace {

using namespace std::chrono_literals;

constexpr const char* kData = "data";
constexpr const char* kMark = "mark";
constexpr const char* kNewMark = "mark.new";
constexpr const char* kLink = "link";  // becomes the ordinary path
constexpr int kAttempts = 1000;        // of a reader that the writers overtake

tl::unexpected<Error> not_installed(const Place& place) {
  return fail(ErrorCode::unavailable, "there is no fence at " + place.path.native() +
                                          "; install it with `leasehold fence install` or "
                                          "install_fence()");
}

Result<Fd> open_outside(const Place& place, Filesystem allowed) {
  const std::string what = "cannot open the folder " + place.folder.native();
  // The way to the folder may lead over symbolic links; the fence begins here.
  Fd folder(::open(place.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(disk_error(what, errno));
  struct statfs filesystem {};
  if (fstatfs(folder.get(), &filesystem) != 0) return fail(disk_error(what, errno));
  const auto magic = static_cast<std::uint64_t>(filesystem.f_type);
  TRY(check_filesystem(place.path.native(), magic, allowed));
  return folder;
}

bool is_missing(int at, const std::string& name) {
  struct stat status {};
  return fstatat(at, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

// Nothing if it is missing.
Result<std::optional<Fd>> open_inside(const Place& place, int outside) {
  const std::string what = "cannot open " + place.vault().native();
  if (is_missing(outside, kHidden)) return std::nullopt;
  const auto hidden = TRY(open_folder(outside, kHidden, what));
  if (is_missing(hidden.get(), place.name.str())) return std::nullopt;
  auto inside = TRY(open_folder(hidden.get(), place.name.str(), what));
  return inside;
}

// Whoever may change `like` may change the new folder.
Result<Fd> make_folder(int at, const std::string& name, int like, const std::string& what) {
  const auto wanted = TRY(status_of(like, what));
  const bool made = mkdirat(at, name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return fail(disk_error(what, errno));
  auto folder = open_folder(at, name, what);
  if (!folder || !made) return folder;
  // Only root can give it to another owner; others share it by its group, if they can.
  (void)!fchown(folder->get(), wanted.st_uid, wanted.st_gid);
  if (fchmod(folder->get(), wanted.st_mode & 07777) != 0) return fail(disk_error(what, errno));
  return folder;
}

bool is_kind(const struct stat& status, Kind kind) {
  return kind == Kind::file ? S_ISREG(status.st_mode) : S_ISDIR(status.st_mode);
}

Status check_fenceable(const Place& place, const std::optional<struct stat>& thing) {
  const std::string& path = place.path.native();
  if (!thing) {
    return fail(ErrorCode::unavailable,
                "there is no file or folder at " + path + "; create it first, and then its fence");
  }
  if (S_ISLNK(thing->st_mode)) {
    return fail(ErrorCode::invalid, path + " is a symbolic link; fence what it points to");
  }
  if (!S_ISREG(thing->st_mode) && !S_ISDIR(thing->st_mode)) {
    return fail(ErrorCode::invalid, path + " is neither a regular file nor a folder");
  }
  if (S_ISREG(thing->st_mode) && thing->st_nlink > 1) {
    return fail(ErrorCode::invalid, path + " has " + std::to_string(thing->st_nlink) +
                                        " hard links; a replacement would leave the others behind");
  }
  return {};
}

// By which of two marks the later holder is known.
auto rank(const Record& record) {
  const auto& holder = record.mark.holder;
  return std::tuple(record.mark.threshold(), holder ? holder->number.value() : 0,
                    holder ? holder->sequence : 0, record.refused);
}

}  // namespace

Result<Vault> Vault::open(const Place& place, const FenceOptions& options) {
  auto outside = TRY(open_outside(place, options.filesystem));
  auto inside = TRY(open_inside(place, outside.get()));
  if (!inside) return not_installed(place);
  const auto here = TRY(status_of(outside.get(), "cannot look at " + place.folder.native()));
  const auto there = TRY(status_of(inside->get(), "cannot look at " + place.vault().native()));
  if (here.st_dev != there.st_dev) {
    return fail(ErrorCode::unsupported, place.vault().native() + " is on another filesystem than " +
                                            place.folder.native() +
                                            "; no rename leads from one to the other");
  }
  return Vault(place, std::move(outside), std::move(*inside));
}

Result<Vault> Vault::create(const Place& place, const FenceOptions& options) {
  const auto outside = TRY(open_outside(place, options.filesystem));
  const std::string what = "cannot make " + place.vault().native();
  const auto there_already = TRY(open_inside(place, outside.get()));
  if (!there_already) {
    const auto thing = TRY(status_at(outside.get(), place.name.str(), what));
    if (auto ok = check_fenceable(place, thing); !ok) {
      // Somebody who is installing it has a second link to it for a moment; found() looks again.
      const auto meanwhile = open_inside(place, outside.get());
      if (!meanwhile || !*meanwhile) return fail(std::move(ok.error()));
    }
  }
  const auto hidden = TRY(make_folder(outside.get(), kHidden, outside.get(), what));
  TRY(make_folder(hidden.get(), place.name.str(), outside.get(), what));
  TRY(sync(hidden.get(), what));
  TRY(sync(outside.get(), what));
  return open(place, options);
}

Vault::Vault(Vault&& other) noexcept
    : place_(std::move(other.place_)),
      outside_(std::move(other.outside_)),
      inside_(std::move(other.inside_)),
      locked_(std::exchange(other.locked_, false)),
      owner_(other.owner_) {}

Vault::~Vault() {
  unlock();
}

// Not left to close(): a child that was forked meanwhile has the descriptor too. And not done by
// that child: it would unlock for its parent.
void Vault::unlock() {
  if (std::exchange(locked_, false) && owner_ == getpid()) flock(inside_.get(), LOCK_UN);
}

Status Vault::check_owner() const {
  if (owner_ == getpid()) return {};
  return fail(ErrorCode::invalid,
              "a forked child does not hold the lock of its parent on " + place_.path.native());
}

std::string Vault::cannot(const std::string& what) const {
  return "cannot " + what + " " + place_.path.native();
}

Status Vault::lock(const FenceOptions& options) {
  const BootTime deadline = BootClock::now() + options.wait;
  auto pause = 100us;
  for (;;) {
    if (flock(inside_.get(), LOCK_EX | LOCK_NB) == 0) break;
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(disk_error(cannot("lock"), errno));
    if (options.stop.stop_requested()) {
      return fail(ErrorCode::cancelled,
                  "stopped while waiting for another writer of " + place_.path.native());
    }
    if (BootClock::now() >= deadline) {
      return fail(ErrorCode::unavailable,
                  "another writer kept " + place_.path.native() +
                      " locked all the time; if it is frozen, it must go on or be killed");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, 10ms);
  }
  locked_ = true;
  owner_ = getpid();
  const auto still = TRY(is_still_there());
  if (!still) {
    return fail(ErrorCode::unavailable,
                place_.vault().native() + " was replaced while this call waited; try again");
  }
  return {};
}

Result<bool> Vault::is_still_there() const {
  const auto now = TRY(open_inside(place_, outside_.get()));
  if (!now) return false;
  const auto mine = TRY(status_of(inside_.get(), cannot("look at")));
  const auto there = TRY(status_of(now->get(), cannot("look at")));
  return same_file(mine, there);
}

std::string Vault::link_to(const std::string& id) const {
  return std::string(kHidden) + "/" + place_.name.str() + "/" + id + "/" + kData;
}

Result<std::optional<struct stat>> Vault::status() const {
  return status_at(outside_.get(), place_.name.str(), cannot("look at"));
}

Result<std::vector<std::string>> Vault::ids() const {
  return names_in(inside_.get(), cannot("list the versions of"));
}

namespace {

std::string removal(const Place& place, Kind kind) {
  const std::string vault = kit::in_quotes(place.vault().native());
  const std::string content = kind == Kind::folder
                                  ? "put a copy of the folder in the place of the link " +
                                        kit::in_quotes(place.path.native()) + ", "
                                  : "";
  return content + "delete " + vault + ", and install the fence again";
}

}  // namespace

Result<Version> Vault::open_version(const std::string& id, Kind kind) const {
  auto folder = TRY(open_folder(inside_.get(), id, cannot("open a version of")));
  const auto mark = TRY(open_file(folder.get(), kMark, cannot("open the mark of")));
  const auto text = TRY(read_whole(mark.get(), cannot("read the mark of")));
  auto record = record_from(place_.name, text, removal(place_, kind));
  if (!record) {
    record.error().message += " (" + (place_.vault() / id / kMark).native() + ")";
    return fail(std::move(record.error()));
  }
  return Version{id, std::move(folder), kind, std::move(*record)};
}

Result<std::optional<Version>> Vault::find_file(const struct stat& thing) const {
  const auto all = TRY(ids());
  for (const std::string& id : all) {
    const auto data = status_at(inside_.get(), id + "/" + kData, cannot("look at"));
    if (!data || !*data || !same_file(**data, thing)) continue;
    auto version = TRY(open_version(id, Kind::file));
    return version;
  }
  return std::nullopt;
}

Result<std::optional<Version>> Vault::find_folder() const {
  const auto target =
      TRY(target_of_link(outside_.get(), place_.name.str(), cannot("follow the link at")));
  const auto all = TRY(ids());
  const auto id = std::find_if(all.begin(), all.end(),
                               [&](const std::string& each) { return link_to(each) == target; });
  if (id == all.end()) return std::nullopt;
  const auto data = TRY(status_at(inside_.get(), *id + "/" + kData, cannot("look at")));
  if (!data || !is_kind(*data, Kind::folder)) return std::nullopt;
  auto version = TRY(open_version(*id, Kind::folder));
  return version;
}

Result<std::optional<Version>> Vault::find(const struct stat& thing) const {
  if (S_ISREG(thing.st_mode)) return find_file(thing);
  if (S_ISLNK(thing.st_mode)) return find_folder();
  return std::nullopt;
}

// A copy that did not keep hard links has the bytes of the version that it was copied with.
Result<std::optional<Version>> Vault::find_copied(const struct stat& thing) const {
  if (!S_ISREG(thing.st_mode)) return std::nullopt;
  const auto all = TRY(ids());
  std::optional<Version> best;
  for (const std::string& id : all) {
    const auto folder = open_folder(inside_.get(), id, "");
    if (!folder) continue;
    const auto data = open_file(folder->get(), kData, "");
    auto version = open_version(id, Kind::file);
    if (!data || !version) continue;  // a draft
    const auto copy = TRY(open_file(outside_.get(), place_.name.str(), cannot("open")));
    const auto same = TRY(same_content(copy.get(), data->get(), cannot("read")));
    if (same && (!best || rank(best->record) < rank(version->record))) best = std::move(*version);
  }
  return best;
}

Status Vault::relink(const Version& version) const {
  const std::string what = cannot("link the copy at");
  if (unlinkat(version.folder.get(), kLink, 0) != 0 && errno != ENOENT) {
    return fail(disk_error(what, errno));
  }
  if (linkat(outside_.get(), place_.name.str().c_str(), version.folder.get(), kLink, 0) != 0 ||
      renameat(version.folder.get(), kLink, version.folder.get(), kData) != 0) {
    return fail(disk_error(what, errno));
  }
  return sync(version.folder.get(), what);
}

Result<std::optional<Version>> Vault::resolve(const struct stat& thing) const {
  auto found = find(thing);
  if (!found || *found) return found;
  auto copied = find_copied(thing);
  if (!copied || !*copied) return copied;
  TRY(relink(**copied));
  return copied;
}

Result<Version> Vault::current() const {
  const auto thing = TRY(status());
  if (!thing) {
    return fail(ErrorCode::unavailable,
                place_.path.native() +
                    " is missing. Its mark is kept: put it back and run `leasehold fence install`");
  }
  // What can be seen may be from a writer that died before it was safe. Nothing is built on that.
  TRY(sync(outside_.get(), cannot("sync the folder of")));
  auto found = TRY(resolve(*thing));
  if (!found) return unknown_thing();
  sweep(*found);
  return std::move(*found);
}

Status Vault::check_installed() const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto all = TRY(ids());
    if (all.empty()) break;
    const bool any = std::any_of(all.begin(), all.end(), [&](const std::string& id) {
      return !is_missing(inside_.get(), id + "/" + kMark) &&
             !is_missing(inside_.get(), id + "/" + kData);
    });
    if (any) return {};
    std::this_thread::yield();  // a writer may have removed the one that was listed
  }
  return not_installed(place_);
}

tl::unexpected<Error> Vault::unknown_thing() const {
  TRY(check_installed());
  return fail(ErrorCode::unavailable,
              place_.path.native() +
                  " was replaced by a program that does not know the fence. Look at it; then "
                  "`leasehold fence install` takes it as it is and keeps the mark");
}

void Vault::sweep(const Version& current) const {
  const auto all = ids();
  if (!all) return;
  for (const std::string& id : *all) {
    if (id == current.id || id == current.record.previous) continue;
    const auto leftover = open_folder(inside_.get(), id, "");
    const bool somebody_fills_it = leftover && flock(leftover->get(), LOCK_EX | LOCK_NB) != 0;
    if (!somebody_fills_it) remove_tree(inside_.get(), id);
  }
}

Result<Record> Vault::peek() const {
  Error last(ErrorCode::internal, "no attempt was made");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto thing = TRY(status());
    if (!thing) return fail(ErrorCode::unavailable, place_.path.native() + " is missing");
    auto found = find(*thing);
    if (found && *found) return std::move((*found)->record);
    // A writer may just have replaced it and removed the version that was seen.
    last = found ? unknown_thing().value() : std::move(found.error());
    std::this_thread::yield();
  }
  return fail(std::move(last));
}

Result<Kind> Vault::kind() const {
  const auto thing = TRY(status());
  if (!thing) return fail(ErrorCode::unavailable, place_.path.native() + " is missing");
  return S_ISREG(thing->st_mode) ? Kind::file : Kind::folder;
}

// Whole under its name, or not there: what is found as a mark is one.
Status Vault::write_mark(int folder, const Record& record) const {
  const std::string what = cannot("write the mark of");
  const auto like = TRY(status_of(inside_.get(), what));
  TRY(write_file(folder, kNewMark, like.st_mode & 0666, to_text(record), what));
  if (renameat(folder, kNewMark, folder, kMark) != 0) return fail(disk_error(what, errno));
  return {};
}

Status Vault::save(Version& version, const Record& record) const {
  TRY(check_owner());
  if (record != version.record) {
    TRY(write_mark(version.folder.get(), record));
  }
  TRY(sync(version.folder.get(), cannot("write the mark of")));
  version.record = record;
  return {};
}

Result<Draft> Vault::new_draft() const {
  const std::string what = cannot("make a new version of");
  std::string id = RequestId::random(system_random()).hex();
  auto folder = TRY(make_folder(inside_.get(), id, inside_.get(), what));
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return fail(disk_error(what, errno));
  return Draft{std::move(id), std::move(folder)};
}

Result<Draft> Vault::draft(Kind kind) const {
  auto draft = new_draft();
  if (!draft) return draft;
  const std::string what = cannot("make a new version of");
  if (kind == Kind::folder) {
    if (mkdirat(draft->folder.get(), kData, 0700) != 0) return fail(disk_error(what, errno));
    return draft;
  }
  const Fd data(openat(draft->folder.get(), kData, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!data) return fail(disk_error(what, errno));
  return draft;
}

// Everything but the rename, and all of it durable.
Status Vault::prepare(const Draft& draft, const Record& record, const Version& old) const {
  const std::string what = cannot("replace");
  const bool is_file = old.kind == Kind::file;
  const auto open_data = is_file ? open_file : open_folder;
  const auto data = open_data(draft.folder.get(), kData, what);
  if (!data) {
    return fail(ErrorCode::invalid,
                "the replacement of " + place_.path.native() + " is not a " +
                    (is_file ? "file" : "folder") + " of its own",
                to_string(data.error()));
  }
  const auto status = TRY(status_of(data->get(), what));
  if (is_file && status.st_nlink > 1) {
    return fail(ErrorCode::invalid, "the replacement of " + place_.path.native() +
                                        " is a hard link to another file; give it a copy");
  }
  const auto old_data = TRY(open_data(old.folder.get(), kData, what));
  TRY(copy_attributes(old_data.get(), data->get(), what));
  TRY(is_file ? sync(data->get(), what) : sync_tree(data->get(), what));
  TRY(write_mark(draft.folder.get(), record));
  if (unlinkat(draft.folder.get(), kLink, 0) != 0 && errno != ENOENT) {
    return fail(disk_error(what, errno));
  }
  const int linked = is_file ? linkat(draft.folder.get(), kData, draft.folder.get(), kLink, 0)
                             : symlinkat(link_to(draft.id).c_str(), draft.folder.get(), kLink);
  if (linked != 0) return fail(disk_error(what, errno));
  TRY(sync(draft.folder.get(), what));
  return sync(inside_.get(), what);
}

Status Vault::sync_data(const Draft& draft) const {
  return sync_entry(draft.folder.get(), kData, cannot("replace"));
}

void Vault::discard(const Draft& draft) const {
  remove_tree(inside_.get(), draft.id);
}

Status Vault::publish(const Draft& draft, Record record, const Version& old) const {
  TRY(check_owner());
  // Whoever has opened a folder may be reading it still. A file stays readable for them anyway.
  record.previous = old.kind == Kind::folder ? old.id : "";
  TRY(prepare(draft, record, old));
  const std::string& name = place_.name.str();
  if (renameat(draft.folder.get(), kLink, outside_.get(), name.c_str()) != 0) {
    return fail(disk_error(cannot("replace"), errno));
  }
  if (auto ok = sync(outside_.get(), cannot("sync the folder of")); !ok) {
    return fail(ErrorCode::outcome_unknown,
                place_.path.native() +
                    " was replaced, but the disk failed: a power cut may undo it with its mark",
                to_string(ok.error()));
  }
  sweep(Version{draft.id, {}, old.kind, record});
  return {};
}

Result<Record> Vault::highest_record() const {
  const auto all = TRY(ids());
  Record highest;
  for (const std::string& id : all) {
    const auto mark = status_at(inside_.get(), id + "/" + kMark, cannot("look at the mark of"));
    if (!mark || !*mark) continue;  // a draft
    const auto version = TRY(open_version(id, Kind::file));
    const Record& record = version.record;
    const auto& lineage = record.mark.lineage;
    if (highest.mark.lineage && lineage && highest.mark.lineage != lineage) {
      return fail(ErrorCode::unavailable,
                  "marks of two lineages are left of " + place_.path.native() + ": see " +
                      place_.vault().native() + " and remove the version that is not wanted");
    }
    if (rank(highest) < rank(record)) highest = record;
  }
  highest.previous.clear();
  return highest;
}

Status Vault::found_file(const Draft& draft) const {
  const std::string what = cannot("fence");
  const auto file = TRY(open_file(outside_.get(), place_.name.str(), what));
  TRY(sync(file.get(), what));
  // With the link to its data the version is the current one.
  if (linkat(outside_.get(), place_.name.str().c_str(), draft.folder.get(), kData, 0) != 0) {
    return fail(disk_error(what, errno));
  }
  return sync(draft.folder.get(), what);
}

Status Vault::found_folder(const Draft& draft) const {
  const std::string what = cannot("fence");
  const std::string& name = place_.name.str();
  const auto folder = TRY(open_folder(outside_.get(), name, what));
  TRY(sync_tree(folder.get(), what));
  if (symlinkat(link_to(draft.id).c_str(), draft.folder.get(), kLink) != 0) {
    return fail(disk_error(what, errno));
  }
  TRY(sync(draft.folder.get(), what));
  if (renameat(outside_.get(), name.c_str(), draft.folder.get(), kData) != 0) {
    return fail(disk_error(what, errno));
  }
  TRY(sync(draft.folder.get(), what));
  if (renameat(draft.folder.get(), kLink, outside_.get(), name.c_str()) != 0) {
    return fail(disk_error(what, errno));
  }
  return sync(outside_.get(), what);
}

// A folder that was moved in, by somebody who died before its link was put in place.
Result<bool> Vault::complete_foundation() const {
  const auto all = TRY(ids());
  for (const std::string& id : all) {
    const auto version = open_version(id, Kind::folder);
    if (!version) continue;
    const auto data = status_at(version->folder.get(), kData, cannot("look at"));
    if (!data || !*data || !is_kind(**data, Kind::folder)) continue;
    TRY(sync(version->folder.get(), cannot("fence")));
    if (renameat(version->folder.get(), kLink, outside_.get(), place_.name.str().c_str()) != 0) {
      continue;
    }
    TRY(sync(outside_.get(), cannot("fence")));
    return true;
  }
  return false;
}

Status Vault::found() const {
  const auto thing = TRY(status());
  if (!thing) {
    const auto completed = TRY(complete_foundation());
    if (completed) return {};
  } else {
    const auto already = TRY(resolve(*thing));
    // By somebody, perhaps, who died before it was safe.
    if (already) return sync(already->folder.get(), cannot("fence"));
  }
  TRY(check_fenceable(place_, thing));
  const auto record = TRY(highest_record());
  const auto draft = TRY(new_draft());
  TRY(write_mark(draft.folder.get(), record));
  TRY(sync(draft.folder.get(), cannot("fence")));
  TRY(sync(inside_.get(), cannot("fence")));
  return S_ISREG(thing->st_mode) ? found_file(draft) : found_folder(draft);
}

}  // namespace leasehold::files
