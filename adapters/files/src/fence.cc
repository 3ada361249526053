#include "leasehold/files/fence.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "fence/attempt.h"
#include "inside.h"
#include "kit/try.h"

namespace leasehold::files {
namespace {

Status check_is_file(const Inside& inside) {
  if (inside.version.kind == Kind::file) return {};
  return fail(
      ErrorCode::invalid,
      inside.path() + " is a folder: enter() and read it by its path, stage() to replace it");
}

Result<std::string> content_of(const Inside& inside) {
  const std::string what = "cannot read " + inside.path();
  const auto data = TRY(open_file(inside.version.folder.get(), "data", what));
  return read_whole(data.get(), what);
}

Status fill(const Draft& draft, std::string_view content, const std::string& what) {
  const Fd data(openat(draft.folder.get(), "data", O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!data) return fail(disk_error(what, errno));
  return write_whole(data.get(), content, what);
}

Status replace(Inside& inside, std::string_view content, fence::Mark mark) {
  const auto draft = TRY(inside.vault.draft(Kind::file));
  auto done = fill(draft, content, "cannot write to " + inside.path());
  if (done) done = inside.vault.publish(draft, inside.record_with(std::move(mark)), inside.version);
  const bool in_place = done || done.error().code == ErrorCode::outcome_unknown;
  if (!in_place) inside.vault.discard(draft);
  return done;
}

bool is_last_number(const fence::Mark& mark, const Token& token, const WriteOptions& options) {
  return mark.is_held_by(token) && options.sequence == mark.holder->sequence;
}

// Raises the mark, before anything is read.
Status enter_here(Inside& inside, const Token& token, Entry entry, Access access) {
  const fence::Attempt attempt{.token = token, .access = access, .single = entry == Entry::single};
  auto verdict = fence::judge(inside.mark(), attempt);
  if (const auto* it = std::get_if<fence::Refuse>(&verdict)) {
    return fail(refused(inside, attempt, it->why));
  }
  return inside.vault.save(inside.version,
                           inside.record_with(std::move(std::get<fence::Enter>(verdict).next)));
}

}  // namespace

Status install_fence(const std::filesystem::path& path, FenceOptions options) {
  const auto place = TRY(Place::parse(path));
  auto vault = TRY(Vault::create(place, options));
  TRY(vault.lock(options));
  return vault.found();
}

Status adopt_lineage(const std::filesystem::path& path, const Lineage& lineage,
                     TokenNumber at_least, FenceOptions options) {
  auto inside = TRY(go_inside(path, options));
  auto mark = TRY(fence::adopted(inside.vault.place().name, inside.mark(), lineage, at_least));
  return inside.vault.save(inside.version, inside.record_with(std::move(mark)));
}

Result<Fence> Fence::open(const std::filesystem::path& path, FenceOptions options) {
  const auto place = TRY(Place::parse(path));
  const auto vault = TRY(Vault::open(place, options));
  TRY(vault.check_installed());
  return Fence(place.path, std::move(options));
}

Result<std::int64_t> Fence::enter(const Token& token, Entry entry, Access access) const {
  TRY(fence::check_reader({.entry = entry, .access = access}));
  auto inside = TRY(go_inside(path_, options_));
  TRY(enter_here(inside, token, entry, access));
  return access == Access::write ? inside.mark().holder->sequence : 0;
}

Result<std::string> Fence::read(const Token& token, Entry entry, Access access) const {
  TRY(fence::check_reader({.entry = entry, .access = access}));
  auto inside = TRY(go_inside(path_, options_));
  TRY(check_is_file(inside));
  TRY(enter_here(inside, token, entry, access));
  return content_of(inside);
}

Status Fence::write(const Token& token, std::string_view content,
                    const WriteOptions& options) const {
  TRY(check_write(options));
  auto inside = TRY(go_inside(path_, options_));
  TRY(check_is_file(inside));
  if (is_last_number(inside.mark(), token, options)) {
    if (TRY(content_of(inside)) == content) return {};  // done before, and its answer was lost
  }
  const auto attempt = TRY(write_attempt(inside, token, options));
  auto verdict = fence::judge(inside.mark(), attempt);
  if (const auto* it = std::get_if<fence::Refuse>(&verdict)) {
    return fail(refused(inside, attempt, it->why));
  }
  return replace(inside, content, std::move(std::get<fence::Enter>(verdict).next));
}

Status Fence::update_with(const Token& token, const ChangeFunction& change,
                          const WriteOptions& options) const {
  TRY(check_write(options));
  auto inside = TRY(go_inside(path_, options_));
  TRY(check_is_file(inside));
  const auto attempt = TRY(write_attempt(inside, token, options));
  auto verdict = fence::judge(inside.mark(), attempt);
  if (const auto* it = std::get_if<fence::Refuse>(&verdict)) {
    return fail(refused(inside, attempt, it->why));
  }
  // The mark need not be raised before the read: the lock keeps everybody out until both the mark
  // and the new content are in place, or neither.
  auto content = TRY(content_of(inside));
  auto changed = TRY(change(std::move(content)));
  return replace(inside, changed, std::move(std::get<fence::Enter>(verdict).next));
}

Result<FenceMark> Fence::mark() const {
  const auto place = TRY(Place::parse(path_));
  const auto vault = TRY(Vault::open(place, options_));
  const auto record = TRY(vault.peek());
  return record.mark.shown(place.name, record.refused);
}

}  // namespace leasehold::files
