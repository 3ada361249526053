#include "inside.h"

#include <utility>

namespace leasehold::files {

Result<Inside> go_inside(const std::filesystem::path& path, const FenceOptions& options) {
  const auto place = Place::parse(path);
  if (!place) return fail(place.error());
  auto vault = Vault::open(*place, options);
  if (!vault) return fail(std::move(vault.error()));
  if (auto ok = vault->lock(options); !ok) return fail(std::move(ok.error()));
  auto version = vault->current();
  if (!version) return fail(std::move(version.error()));
  return Inside{std::move(*vault), std::move(*version)};
}

Status check_write(const WriteOptions& options) {
  if (!options.sequence || *options.sequence >= 1) return {};
  return fail(ErrorCode::invalid, "a sequence number is at least 1; " +
                                      std::to_string(*options.sequence) + " was given");
}

Verdict judge_entry(const Inside& inside, const Token& token, Entry entry) {
  return judge(inside.vault.place().name, inside.version.record, {.token = token, .entry = entry});
}

Verdict judge_write(const Inside& inside, const Token& token, const WriteOptions& options) {
  return judge(
      inside.vault.place().name, inside.version.record,
      {.token = token, .entry = options.entry, .writes = true, .sequence = options.sequence});
}

Error counted(Inside& inside, Error error) {
  if (error.code != ErrorCode::fenced_out) return error;
  Record record = inside.version.record;
  ++record.refused;
  if (auto ok = inside.vault.save(inside.version, record); !ok) {
    error.store_words = "the refusal could not be counted: " + to_string(ok.error());
  }
  return error;
}

}  // namespace leasehold::files
