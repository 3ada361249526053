#include "resource_pattern.h"

#include <algorithm>

#include "text.h"

namespace leasehold::gate {
namespace {

constexpr std::string_view kResource = "{resource}";

// RFC 3986: what may stand in a path, besides the percent sign and the slash.
bool is_path_char(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
         std::string_view("-._~!$&'()*+,;=:@").find(c) != std::string_view::npos;
}

struct PathSegment {
  std::string_view raw;
  std::string decoded;
};

bool is_dots(std::string_view segment) {
  const std::string_view name = segment.substr(0, segment.find(';'));
  return name == "." || name == "..";
}

Parsed<PathSegment> decode_segment(std::string_view raw, EncodedSlash slashes) {
  const bool plain =
      std::all_of(raw.begin(), raw.end(), [](char c) { return is_path_char(c) || c == '%'; });
  if (!plain) return bad_message("the path has characters that must be percent-encoded");
  auto decoded = percent_decoded(raw);
  if (!decoded) return bad_message("a percent sign in the path is not followed by two digits");
  if (is_dots(raw) || is_dots(*decoded)) {
    return bad_message("the path has a segment '.' or '..'");
  }
  if (slashes == EncodedSlash::refused && decoded->find_first_of("/\\") != std::string::npos) {
    return bad_message(
        "the path has an encoded slash or backslash, which the upstream may read as two segments");
  }
  return PathSegment{raw, std::move(*decoded)};
}

Parsed<std::vector<PathSegment>> split(std::string_view target, EncodedSlash slashes) {
  if (!target.starts_with('/')) {
    return bad_message("the target is not a path that begins with a slash");
  }
  if (target.find('#') != std::string_view::npos) return bad_message("the target has a '#'");
  std::string_view path = target.substr(0, target.find('?'));
  std::vector<PathSegment> segments;
  while (path.size() > 1) {
    path.remove_prefix(1);
    const std::size_t slash = path.find('/');
    const std::string_view raw = path.substr(0, slash);
    if (raw.empty()) return bad_message("the path has an empty segment");
    auto segment = decode_segment(raw, slashes);
    if (!segment) return tl::unexpected(segment.error());
    segments.push_back(std::move(*segment));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash);
  }
  return segments;
}

}  // namespace

Result<ResourcePattern> ResourcePattern::parse(std::string_view text) {
  ResourcePattern pattern;
  pattern.text_ = text;
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::invalid, "the resource pattern '" + std::string(text) + "' " + why +
                                        "; write it like /accounts/{resource}");
  };
  if (!text.starts_with('/')) return wrong("does not begin with a slash");
  bool names_a_resource = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t slash = rest.find('/');
    const std::string_view segment = rest.substr(0, slash);
    rest.remove_prefix(segment.size());
    if (segment.empty()) return wrong("has an empty segment");
    if (segment == kResource) {
      names_a_resource = true;
      pattern.segments_.push_back({Kind::resource, ""});
    } else if (segment == "*") {
      pattern.segments_.push_back({Kind::any, ""});
    } else if (segment.find_first_of("{}*%?#") != std::string_view::npos) {
      return wrong("has a segment that is neither a word, * nor {resource}");
    } else {
      pattern.segments_.push_back({Kind::literal, std::string(segment)});
    }
  }
  if (!names_a_resource) return wrong("has no {resource}");
  return pattern;
}

Parsed<ResourceName> ResourcePattern::find(std::string_view target, EncodedSlash slashes) const {
  const auto segments = split(target, slashes);
  if (!segments) return tl::unexpected(segments.error());
  std::string name;
  bool first = true;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const bool fits = i < segments->size() && (segments_[i].kind != Kind::literal ||
                                               segments_[i].literal == (*segments)[i].decoded);
    if (!fits)
      return bad_message("the path does not name a resource: it is not like " + text_, 404);
    if ((*segments)[i].raw.find(';') != std::string_view::npos) {
      return bad_message("the path has parameters (;) where the resource is named");
    }
    if (segments_[i].kind != Kind::resource) continue;
    if (!first) name += '/';
    first = false;
    name += (*segments)[i].decoded;
  }
  auto resource = ResourceName::parse(name);
  if (!resource) return bad_message(resource.error().message);
  return std::move(*resource);
}

Parsed<void> check_target(std::string_view target, EncodedSlash slashes) {
  const auto segments = split(target, slashes);
  if (!segments) return tl::unexpected(segments.error());
  return {};
}

}  // namespace leasehold::gate
