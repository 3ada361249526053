// What the tests of the file fence share: a folder of their own, tokens, plain reading.
#pragma once

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "kit/system/fd.h"
#include "leasehold/error.h"
#include "leasehold/token.h"
#include "testing/results.h"
#include "testing/tokens.h"

namespace leasehold::files {

using kit::Fd;

class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& base = std::filesystem::temp_directory_path()) {
    std::string pattern = (base / "leasehold-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder in " + pattern);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// As any program reads it, past the fence.
inline Result<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::unavailable, "cannot read " + path.native());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.native());
}

using leasehold::testing::bad;
using leasehold::testing::good;
using leasehold::testing::lineage_of;
using leasehold::testing::token_of;

}  // namespace leasehold::files
