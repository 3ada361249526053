// A file descriptor as a value.
#pragma once

#include <utility>

namespace leasehold::kit {

// Owns one file descriptor, or none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int raw) : raw_(raw) {}
  Fd(Fd&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    raw_ = std::exchange(other.raw_, -1);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return raw_; }
  explicit operator bool() const { return raw_ >= 0; }
  void reset() noexcept;  // closes it

 private:
  int raw_ = -1;
};

}  // namespace leasehold::kit
