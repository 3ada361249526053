#include "version.h"

#include <charconv>

namespace leasehold::etcd {

std::optional<Version> Version::parse(std::string_view text) {
  Version version;
  for (int* part : {&version.major, &version.minor, &version.patch}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (error != std::errc() || *part < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (part == &version.patch) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  return version;
}

std::string known_fault(const Version& version) {
  const bool old_3_4 = version < Version{3, 4, 32};
  const bool old_3_5 = version >= Version{3, 5, 0} && version < Version{3, 5, 14};
  if (!old_3_4 && !old_3_5) return "";
  return "after a crash its revisions can go back in rare cases; 3.4.32 and 3.5.14 mend that";
}

}  // namespace leasehold::etcd
