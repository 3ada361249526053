// How a request wants a lock.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/error.h"

namespace leasehold {

// Alone, beside others who share, or as one of N. A lock is a queue of requests: one is granted
// when it fits beside every request that is granted and every one before it, so that nobody
// overtakes.
class Mode {
 public:
  enum class Kind { exclusive, shared, permit };
  static constexpr std::int64_t kMostPermits = 10'000;

  constexpr Mode() = default;  // exclusive
  static constexpr Mode exclusive() { return Mode(kExclusive); }
  static constexpr Mode shared() { return Mode(kShared); }
  // One of so many: 1 to kMostPermits, else acquire() fails with `invalid`. All who use the lock
  // name the same number, as it belongs to the lock.
  static constexpr Mode permit_of(std::int64_t permits) {
    return Mode(permits < 1 ? kNoPermits : permits);
  }

  constexpr Kind kind() const {
    if (code_ == kExclusive) return Kind::exclusive;
    return code_ == kShared ? Kind::shared : Kind::permit;
  }
  constexpr bool is_exclusive() const { return code_ == kExclusive; }
  constexpr bool is_permit() const { return kind() == Kind::permit; }
  // Of how many it is one; 1 if it is not a permit.
  constexpr std::int64_t permits() const { return is_permit() ? code_ : 1; }

  // Whether requests of both modes may stand in one queue: exclusive and shared requests wait for
  // each other, permits only for permits of the same number.
  constexpr bool mixes_with(Mode other) const {
    return is_permit() || other.is_permit() ? code_ == other.code_ : true;
  }

  [[nodiscard]] Status check() const;

  // As a number, for what a store writes.
  constexpr std::int64_t code() const { return code_; }
  // Nothing if there is no such mode.
  static std::optional<Mode> from_code(std::int64_t code);

  bool operator==(const Mode&) const = default;

 private:
  static constexpr std::int64_t kExclusive = 0;
  static constexpr std::int64_t kShared = -1;
  static constexpr std::int64_t kNoPermits = -2;
  constexpr explicit Mode(std::int64_t code) : code_(code) {}
  std::int64_t code_ = kExclusive;
};

// "exclusive", "shared" or "one of 4 permits".
std::string to_string(Mode mode);

// Which of N permits, from 0 on: it names the GPU, the licence or the connection. Fence each slot
// as a resource of its own, NAME#slot: at a common one the later of two holders shuts the earlier
// out.
struct Slot {
  std::int64_t number = 0;
  auto operator<=>(const Slot&) const = default;
};

// What a request says about itself to whoever looks: an address, a version. At most 1,024 bytes of
// UTF-8 without control characters; empty: nothing.
class Note {
 public:
  static constexpr std::size_t kMostBytes = 1024;

  Note() = default;
  [[nodiscard]] static Result<Note> parse(std::string_view text);

  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  bool operator==(const Note&) const = default;

 private:
  explicit Note(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// A note that another program may have written, for a terminal: as it is, or what says that it
// cannot be shown.
std::string readable_note(std::string_view text);

}  // namespace leasehold
