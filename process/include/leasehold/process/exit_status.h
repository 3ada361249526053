// How a process ended.
#pragma once

#include <compare>
#include <string>

namespace leasehold::process {

class ExitStatus {
 public:
  static ExitStatus exited(int code) { return {How::exited, code}; }
  static ExitStatus signalled(int signal) { return {How::signalled, signal}; }
  // It has ended, but somebody else was told how: another wait(2) in this process, or the kernel
  // because SIGCHLD is ignored. Neither a success nor a failure.
  static ExitStatus unknown() { return {How::unknown, -1}; }

  bool known() const { return how_ != How::unknown; }
  bool by_signal() const { return how_ == How::signalled; }
  bool success() const { return how_ == How::exited && number_ == 0; }

  // The exit code, or the signal's number; -1 if unknown.
  int number() const { return number_; }

  // Like a shell's $?: the code, or 128 + signal; -1 if unknown.
  int shell_status() const { return by_signal() ? 128 + number_ : number_; }

  // "exited with status 3", "was ended by signal 9 (Killed)", "ended in an unknown way".
  std::string describe() const;

  auto operator<=>(const ExitStatus&) const = default;

 private:
  enum class How { exited, signalled, unknown };
  ExitStatus(How how, int number) : how_(how), number_(number) {}
  How how_;
  int number_;
};

}  // namespace leasehold::process
