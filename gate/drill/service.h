// A service that keeps texts and knows nothing of tokens, and a gate in front of it.
#pragma once

#include <memory>
#include <string>

#include "drill/runner/parts.h"

namespace leasehold::gate {

// Runs on threads of its own until it is destroyed. `folder` is for what the gate must not forget.
// Throws std::runtime_error if it cannot listen.
class HttpService final : public drill::Place {
 public:
  explicit HttpService(const std::string& folder);
  ~HttpService() override;

  // Of the gate, and the port behind it: "http://127.0.0.1:8480?service=9480".
  std::string url() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::gate
