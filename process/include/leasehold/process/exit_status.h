// How a process ended.
#pragma once

#include <compare>
#include <string>

namespace leasehold::process {

class ExitStatus {
 public:
  static ExitStatus exited(int code) { return {false, code}; }
  static ExitStatus signalled(int signal) { return {true, signal}; }

  bool by_signal() const { return by_signal_; }
  bool success() const { return !by_signal_ && number_ == 0; }

  // The exit code, or the signal's number.
  int number() const { return number_; }

  // As a shell's $?: the code, or 128 + signal.
  int shell_status() const { return by_signal_ ? 128 + number_ : number_; }

  // "exited with status 3", "was ended by signal 9 (Killed)".
  std::string describe() const;

  auto operator<=>(const ExitStatus&) const = default;

 private:
  ExitStatus(bool by_signal, int number) : by_signal_(by_signal), number_(number) {}
  bool by_signal_;
  int number_;
};

}  // namespace leasehold::process
