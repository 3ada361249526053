// Names of locks, resources and owners: checked once, then trusted.
#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "leasehold/error.h"

namespace leasehold {

inline constexpr std::size_t kMaxNameBytes = 512;

namespace detail {
// 1 to `most` bytes of UTF-8 without control characters; `field` is what the error calls it.
Status check_text(std::string_view field, std::string_view text, std::size_t most);
// The same, with the limit of names.
Status check_name(std::string_view field, std::string_view text);
// The bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t utf8_length(std::string_view text);
inline const std::string kNoText;
}  // namespace detail

// Cheap to copy: copies share the text. Empty only if it was moved from.
template <class Kind>
class Name {
 public:
  // Fails with `invalid`, naming the field, the limit and what was given.
  [[nodiscard]] static Result<Name> parse(std::string_view text) {
    if (auto ok = detail::check_name(Kind::field, text); !ok) return fail(ok.error());
    return Name(std::string(text));
  }

  const std::string& str() const { return text_ ? *text_ : detail::kNoText; }
  bool operator==(const Name& other) const { return str() == other.str(); }
  auto operator<=>(const Name& other) const { return str() <=> other.str(); }

 private:
  explicit Name(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  std::shared_ptr<const std::string> text_;
};

struct LockNameKind {
  static constexpr std::string_view field = "lock name";
};
struct ResourceNameKind {
  static constexpr std::string_view field = "resource name";
};
struct OwnerLabelKind {
  static constexpr std::string_view field = "owner label";
};
struct OnceKeyKind {
  static constexpr std::string_view field = "idempotency key";
};

using LockName = Name<LockNameKind>;
using ResourceName = Name<ResourceNameKind>;
using OnceKey = Name<OnceKeyKind>;

// Who holds a lock, for people to read. Never compared: two cloned machines may share a label.
using OwnerLabel = Name<OwnerLabelKind>;

// "host:pid:program" of this process.
OwnerLabel default_owner_label();

// A label that another program may have written, for a terminal: as it is, or a note that it cannot
// be shown.
std::string readable_label(std::string_view text);

}  // namespace leasehold

template <class Kind>
struct std::hash<leasehold::Name<Kind>> {
  std::size_t operator()(const leasehold::Name<Kind>& name) const noexcept {
    return std::hash<std::string>{}(name.str());
  }
};
