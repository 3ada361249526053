// Checks that a test runs in a process of its own, which may give up privileges or bound itself.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace leasehold::testing {

// Whether `check` holds in a child.
inline bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// As somebody whom file permissions bind, which root they do not.
inline bool holds_without_privileges(const std::function<bool()>& check) {
  return holds_in_child([&] {
    constexpr uid_t nobody = 65534;
    return (geteuid() != 0 || (setgid(nobody) == 0 && setuid(nobody) == 0)) && check();
  });
}

// A filesystem of this process alone. Where the system forbids that, the test says so by failing.
inline bool in_own_mount(const std::filesystem::path& at, const char* type, const char* options,
                         unsigned long flags, const std::function<bool()>& check) {
  return holds_in_child([&] {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    const int spaces = user == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
    if (unshare(spaces) != 0) return false;
    // Without a name there, nobody can own a new file.
    if (user != 0) {
      std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
    }
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    const bool bind = type == nullptr;
    if (mount(bind ? at.c_str() : "none", at.c_str(), type, bind ? MS_BIND : 0, options) != 0) {
      return false;
    }
    if (flags != 0 && mount("none", at.c_str(), nullptr, MS_REMOUNT | MS_BIND | flags, nullptr)) {
      return false;
    }
    return check();
  });
}

}  // namespace leasehold::testing
