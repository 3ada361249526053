#include "leasehold/process/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace leasehold::process {

std::optional<Terminal> Terminal::controlling() {
  Fd fd(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!fd) return std::nullopt;
  return Terminal(std::move(fd));
}

Terminal::Terminal(Fd fd) : fd_(std::move(fd)) {
  termios modes{};
  if (tcgetattr(fd_.get(), &modes) == 0) modes_ = modes;
}

bool Terminal::is_foreground() const {
  return is_foreground(getpgrp());
}

bool Terminal::is_foreground(pid_t group) const {
  return tcgetpgrp(fd_.get()) == group;
}

bool Terminal::give_to(pid_t group) {
  return tcsetpgrp(fd_.get(), group) == 0;
}

void Terminal::take_back_from(pid_t group) {
  if (is_foreground(group)) give_to(getpgrp());
}

void Terminal::restore_modes() {
  if (modes_) tcsetattr(fd_.get(), TCSANOW, &*modes_);
}

Pty make_pty() {
  int master = -1;
  int slave = -1;
  if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) {
    throw std::system_error(errno, std::generic_category(), "openpty");
  }
  fcntl(master, F_SETFD, FD_CLOEXEC);
  fcntl(slave, F_SETFD, FD_CLOEXEC);
  return {Fd(master), Fd(slave)};
}

}  // namespace leasehold::process
