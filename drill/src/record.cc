#include "leasehold/drill/record.h"

#include <array>

namespace leasehold::drill {
namespace {

constexpr std::array<std::string_view, 15> kKinds = {
    "invoke", "ok",    "fail",   "unknown", "grant", "renew", "expire", "release",
    "queue",  "leave", "accept", "refuse",  "sweep", "fault", "heal"};
constexpr std::array<std::string_view, 11> kOperations = {
    "none",  "acquire", "renew",      "release", "read", "write",
    "pause", "crash",   "disconnect", "storm",   "clock"};

template <class Enum, std::size_t size>
std::optional<Enum> find(const std::array<std::string_view, size>& names, std::string_view text) {
  for (std::size_t i = 0; i < size; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Kind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Operation operation) {
  return kOperations[static_cast<std::size_t>(operation)];
}

std::optional<Kind> parse_kind(std::string_view text) {
  return find<Kind>(kKinds, text);
}

std::optional<Operation> parse_operation(std::string_view text) {
  return find<Operation>(kOperations, text);
}

}  // namespace leasehold::drill
