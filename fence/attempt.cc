#include "fence/attempt.h"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "kit/try.h"
#include "leasehold/random.h"

namespace leasehold::fence {
namespace {

std::uint64_t fnv(std::string_view bytes, std::uint64_t hash) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

Result<Attempt> attempt_of(const Token& token, const EnterOptions& options, bool writes,
                           const std::vector<std::string>& content) {
  TRY(check_sequence(options.sequence));
  TRY(check_reader(options));
  if (writes && options.access == Access::read) {
    return fail(ErrorCode::invalid, "whoever enters to read must change nothing");
  }
  Attempt attempt{.token = token,
                  .access = options.access,
                  .writes = writes,
                  .single = options.entry == Entry::single,
                  .sequence = options.sequence};
  if (attempt.sequence != 0) {
    attempt.write = fingerprint(content);
  } else if (writes || attempt.single) {
    attempt.write = RequestId::random(system_random()).hex();
  }
  return attempt;
}

CallContext context_of(const EnterOptions& options) {
  return {BootClock::now() + options.timeout, options.stop};
}

Status check_sequence(std::int64_t sequence) {
  if (sequence >= 0) return {};
  return fail(ErrorCode::invalid, "a sequence number is " + std::to_string(sequence) +
                                      "; it must be from 1 to 9223372036854775807, or 0 for none");
}

Status check_reader(const EnterOptions& options) {
  if (options.access == Access::write) return {};
  if (options.entry == Entry::single) {
    return fail(ErrorCode::invalid, "single entry is for whoever enters to write");
  }
  if (options.sequence != 0) {
    return fail(ErrorCode::invalid, "a sequence number is for whoever enters to write");
  }
  return {};
}

std::string fingerprint(const std::vector<std::string>& parts) {
  std::uint64_t halves[] = {0xcbf29ce484222325, 0x84222325cbf29ce4};
  for (std::uint64_t& half : halves) {
    for (const std::string& part : parts) {
      half = fnv(std::to_string(part.size()) + ":", half);
      half = fnv(part, half);
    }
  }
  std::array<std::uint8_t, sizeof halves> bytes;
  std::memcpy(bytes.data(), halves, bytes.size());
  return detail::to_hex(bytes);
}

}  // namespace leasehold::fence
