// A service that keeps texts and knows nothing of tokens, and a gate in front of it.
#pragma once

#include <memory>
#include <string>

namespace leasehold::drill {

// Runs on threads of its own until it is destroyed. `folder` is for what the gate must not forget.
// Throws std::runtime_error if it cannot listen.
class HttpService {
 public:
  explicit HttpService(const std::string& folder);
  ~HttpService();

  // Of the gate, and the port behind it: "http://127.0.0.1:8480?service=9480".
  std::string url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::drill
