#include "inside.h"

#include <limits>
#include <utility>

#include "fence/refusal.h"
#include "kit/try.h"

namespace leasehold::files {

Record Inside::record_with(fence::Mark mark) const {
  Record record = version.record;
  record.mark = std::move(mark);
  return record;
}

Result<Inside> go_inside(const std::filesystem::path& path, const FenceOptions& options) {
  const auto place = TRY(Place::parse(path));
  auto vault = TRY(Vault::open(place, options));
  TRY(vault.lock(options));
  auto version = TRY(vault.current());
  return Inside{std::move(vault), std::move(version)};
}

Status check_write(const WriteOptions& options) {
  if (!options.sequence || *options.sequence >= 1) return {};
  return fail(ErrorCode::invalid, "a sequence number is at least 1; " +
                                      std::to_string(*options.sequence) + " was given");
}

Result<fence::Attempt> write_attempt(const Inside& inside, const Token& token,
                                     const WriteOptions& options) {
  fence::Attempt attempt{.token = token, .writes = true, .single = options.entry == Entry::single};
  const fence::Mark& mark = inside.mark();
  const std::int64_t last = mark.is_held_by(token) ? mark.holder->sequence : 0;
  if (!options.sequence && last == std::numeric_limits<std::int64_t>::max()) {
    return fail(ErrorCode::invalid, "no sequence number is left for this holder");
  }
  attempt.sequence = options.sequence ? *options.sequence : last + 1;
  return attempt;
}

Error refused(Inside& inside, const fence::Attempt& attempt, fence::Reason why) {
  Error error = fence::refusal(inside.vault.place().name, attempt, why, inside.mark());
  if (error.code != ErrorCode::fenced_out) return error;
  Record record = inside.version.record;
  ++record.refused;
  if (auto ok = inside.vault.save(inside.version, record); !ok) {
    error.store_words = "the refusal could not be counted: " + to_string(ok.error());
  }
  return error;
}

}  // namespace leasehold::files
