// `leasehold fence enter`, `read` and `write`: what a script under `leasehold run --fenced` does
// with a fenced file or folder.
#pragma once

#include <optional>
#include <string>

#include "leasehold/files/fence.h"
#include "leasehold/time.h"

namespace leasehold::cli {

class Arguments;

class FenceData {
 public:
  // Adds its commands below `fence`.
  void declare(Arguments& fence);

  // One of them was chosen.
  bool chosen() const;
  int execute() const;

 private:
  void declare_common(Arguments& arguments);
  int enter(const files::Fence& fence, const Token& token) const;
  int read(const files::Fence& fence, const Token& token) const;
  int write(const files::Fence& fence, const Token& token) const;
  files::Entry entry() const;

  Arguments* enter_ = nullptr;
  Arguments* read_ = nullptr;
  Arguments* write_ = nullptr;
  std::string url_;
  Millis wait_{10'000};
  bool once_ = false;
  std::optional<std::string> sequence_;
  std::optional<std::string> from_;
};

}  // namespace leasehold::cli
