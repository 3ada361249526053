// `leasehold fence enter`, `read` and `write`: what a script under `leasehold run --fenced` does
// with a fenced file or folder.
#pragma once

#include <optional>
#include <string>

#include "cli/command/exit_status.h"
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
  ExitStatus execute() const;

 private:
  void declare_common(Arguments& arguments);
  void declare_single_entry(Arguments& arguments);
  void declare_shared(Arguments& arguments);
  ExitStatus enter(const files::Fence& fence, const Token& token) const;
  ExitStatus read(const files::Fence& fence, const Token& token) const;
  ExitStatus write(const files::Fence& fence, const Token& token) const;
  files::Entry entry() const;
  files::Access access() const;

  Arguments* enter_ = nullptr;
  Arguments* read_ = nullptr;
  Arguments* write_ = nullptr;
  std::string url_;
  Millis wait_{10'000};
  bool single_entry_ = false;
  bool shared_ = false;
  std::optional<std::int64_t> sequence_;
  std::optional<std::string> from_;
};

}  // namespace leasehold::cli
