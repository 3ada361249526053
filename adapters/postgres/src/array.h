// PostgreSQL's arrays as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leasehold::postgres {

// {"a","b\"c"}
class TextArray {
 public:
  void add(std::string_view element) {
    text_.back() = text_.size() == 1 ? '{' : ',';
    text_ += '"';
    for (const char c : element) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += "\"}";
  }
  const char* c_str() const { return text_.size() == 1 ? "{}" : text_.c_str(); }

 private:
  std::string text_ = "{";
};

// {t,f,t}
inline std::vector<bool> read_flags(std::string_view text) {
  std::vector<bool> flags;
  for (const char c : text) {
    if (c == 't' || c == 'f') flags.push_back(c == 't');
  }
  return flags;
}

}  // namespace leasehold::postgres
