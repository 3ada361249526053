#include "leasehold/mode.h"

#include "leasehold/name.h"

namespace leasehold {

Status Mode::check() const {
  if (!is_permit() || (code_ >= 1 && code_ <= kMostPermits)) return {};
  const std::string given = code_ == kNoPermits ? "fewer than one" : std::to_string(code_);
  return fail(ErrorCode::invalid, "a lock has 1 to " + std::to_string(kMostPermits) +
                                      " permits, and " + given + " was asked for");
}

std::optional<Mode> Mode::from_code(std::int64_t code) {
  if (code < kShared || code > kMostPermits) return std::nullopt;
  return Mode(code);
}

std::string to_string(Mode mode) {
  switch (mode.kind()) {
    case Mode::Kind::exclusive:
      return "exclusive";
    case Mode::Kind::shared:
      return "shared";
    case Mode::Kind::permit:
      return "one of " + std::to_string(mode.permits()) + " permits";
  }
  return "";
}

Result<Note> Note::parse(std::string_view text) {
  if (text.empty()) return Note();
  if (auto ok = detail::check_text("note", text, kMostBytes); !ok) return fail(ok.error());
  return Note(std::string(text));
}

std::string readable_note(std::string_view text) {
  return Note::parse(text) ? std::string(text) : "(an unreadable note)";
}

}  // namespace leasehold
