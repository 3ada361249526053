#include "leasehold/files/fence.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "inside.h"

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
  const auto data = open_file(inside.version.folder.get(), "data", what);
  if (!data) return fail(data.error());
  return read_whole(data->get(), what);
}

Status fill(const Draft& draft, std::string_view content, const std::string& what) {
  const Fd data(openat(draft.folder.get(), "data", O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!data) return fail(disk_error(what, errno));
  return write_whole(data.get(), content, what);
}

Status replace(Inside& inside, std::string_view content, fence::Mark mark) {
  const auto draft = inside.vault.draft(Kind::file);
  if (!draft) return fail(draft.error());
  auto done = fill(*draft, content, "cannot write to " + inside.path());
  if (done)
    done = inside.vault.publish(*draft, inside.record_with(std::move(mark)), inside.version);
  const bool in_place = done || done.error().code == ErrorCode::outcome_unknown;
  if (!in_place) inside.vault.discard(*draft);
  return done;
}

// Raises the mark, before anything is read.
Status enter_here(Inside& inside, const Token& token, Entry entry) {
  auto verdict = fence::judge(inside.mark(), {.token = token, .single = entry == Entry::once});
  if (const auto* it = std::get_if<fence::Refuse>(&verdict)) {
    return fail(refused(inside, token, it->why));
  }
  return inside.vault.save(inside.version,
                           inside.record_with(std::move(std::get<fence::Enter>(verdict).next)));
}

}  // namespace

Status install_fence(const std::filesystem::path& path, FenceOptions options) {
  const auto place = Place::parse(path);
  if (!place) return fail(place.error());
  auto vault = Vault::create(*place, options);
  if (!vault) return fail(std::move(vault.error()));
  if (auto ok = vault->lock(options); !ok) return ok;
  return vault->found();
}

Status adopt_lineage(const std::filesystem::path& path, const Lineage& lineage,
                     TokenNumber at_least, FenceOptions options) {
  auto inside = go_inside(path, options);
  if (!inside) return fail(std::move(inside.error()));
  auto mark = fence::adopted(inside->vault.place().name, inside->mark(), lineage, at_least);
  if (!mark) return fail(std::move(mark.error()));
  return inside->vault.save(inside->version, inside->record_with(std::move(*mark)));
}

Result<Fence> Fence::open(const std::filesystem::path& path, FenceOptions options) {
  const auto place = Place::parse(path);
  if (!place) return fail(place.error());
  const auto vault = Vault::open(*place, options);
  if (!vault) return fail(vault.error());
  if (auto ok = vault->check_installed(); !ok) return fail(std::move(ok.error()));
  return Fence(place->path, std::move(options));
}

Result<std::int64_t> Fence::enter(const Token& token, Entry entry) const {
  auto inside = go_inside(path_, options_);
  if (!inside) return fail(std::move(inside.error()));
  if (auto ok = enter_here(*inside, token, entry); !ok) return fail(std::move(ok.error()));
  return inside->mark().holder->sequence;
}

Result<std::string> Fence::read(const Token& token, Entry entry) const {
  auto inside = go_inside(path_, options_);
  if (!inside) return fail(std::move(inside.error()));
  if (auto ok = check_is_file(*inside); !ok) return fail(std::move(ok.error()));
  if (auto ok = enter_here(*inside, token, entry); !ok) return fail(std::move(ok.error()));
  return content_of(*inside);
}

Status Fence::write(const Token& token, std::string_view content,
                    const WriteOptions& options) const {
  if (auto ok = check_write(options); !ok) return ok;
  auto inside = go_inside(path_, options_);
  if (!inside) return fail(std::move(inside.error()));
  if (auto ok = check_is_file(*inside); !ok) return ok;
  const auto attempt = write_attempt(*inside, token, options, content);
  if (!attempt) return fail(attempt.error());
  auto verdict = fence::judge(inside->mark(), *attempt);
  if (auto* enter = std::get_if<fence::Enter>(&verdict)) {
    return replace(*inside, content, std::move(enter->next));
  }
  const auto* it = std::get_if<fence::Refuse>(&verdict);
  if (it == nullptr) return {};  // done before, and its answer was lost
  return fail(refused(*inside, token, it->why));
}

Status Fence::update_with(const Token& token, const ChangeFunction& change,
                          const WriteOptions& options) const {
  if (auto ok = check_write(options); !ok) return ok;
  auto inside = go_inside(path_, options_);
  if (!inside) return fail(std::move(inside.error()));
  if (auto ok = check_is_file(*inside); !ok) return ok;
  const auto attempt = write_attempt(*inside, token, options);
  if (!attempt) return fail(attempt.error());
  auto verdict = fence::judge(inside->mark(), *attempt);
  if (const auto* it = std::get_if<fence::Refuse>(&verdict)) {
    return fail(refused(*inside, token, it->why));
  }
  // The mark need not be raised before the read: the lock keeps everybody out until both the mark
  // and the new content are in place, or neither.
  auto content = content_of(*inside);
  if (!content) return fail(std::move(content.error()));
  auto changed = change(std::move(*content));
  if (!changed) return fail(std::move(changed.error()));
  return replace(*inside, *changed, std::move(std::get<fence::Enter>(verdict).next));
}

Result<FenceMark> Fence::mark() const {
  const auto place = Place::parse(path_);
  if (!place) return fail(place.error());
  const auto vault = Vault::open(*place, options_);
  if (!vault) return fail(vault.error());
  const auto record = vault->peek();
  if (!record) return fail(record.error());
  return record->mark.shown(place->name, record->refused);
}

}  // namespace leasehold::files
