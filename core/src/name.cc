#include "leasehold/name.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "kit/text/utf8.h"

namespace leasehold {
namespace {

std::string program_name() {
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return "unknown";
  const std::string_view text(path.data(), static_cast<std::size_t>(length));
  return std::string(text.substr(text.rfind('/') + 1));
}

std::string host_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return "localhost";
  return host.data();
}

}  // namespace

namespace detail {

std::size_t utf8_length(std::string_view text) {
  return text.empty() ? 0 : kit::decode_utf8(text).length;
}

Status check_name(std::string_view field, std::string_view text) {
  return check_text(field, text, kMaxNameBytes);
}

Status check_text(std::string_view field, std::string_view text, std::size_t most) {
  const std::string name(field);
  const std::string limit = std::to_string(most);
  if (text.empty()) {
    return fail(ErrorCode::invalid, name + " is empty; it must have 1 to " + limit + " bytes");
  }
  if (text.size() > most) {
    return fail(ErrorCode::invalid, name + " has " + std::to_string(text.size()) +
                                        " bytes; at most " + limit + " are allowed");
  }
  for (std::size_t at = 0; at < text.size();) {
    const kit::Decoded decoded = kit::decode_utf8(text.substr(at));
    if (decoded.length == 0) {
      return fail(ErrorCode::invalid,
                  name + " is not valid UTF-8 at byte " + std::to_string(at + 1));
    }
    if (kit::is_control(decoded.point)) {
      return fail(ErrorCode::invalid,
                  name + " has a control character at byte " + std::to_string(at + 1));
    }
    at += decoded.length;
  }
  return {};
}

}  // namespace detail

std::string readable_label(std::string_view text) {
  return OwnerLabel::parse(text) ? std::string(text) : "(an unreadable label)";
}

OwnerLabel default_owner_label() {
  const std::string tail = ":" + std::to_string(getpid());
  if (auto label = OwnerLabel::parse(host_name() + tail + ":" + program_name())) return *label;
  return OwnerLabel::parse("process" + tail).value();
}

}  // namespace leasehold
