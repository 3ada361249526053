// Checks that a test runs in a process of its own, which may give up privileges or bound itself.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace leasehold::testing {

// Whether `check` holds in a child.
inline bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// As an ordinary user: file permissions do not bind root.
inline bool holds_without_privileges(const std::function<bool()>& check) {
  return holds_in_child([&] {
    constexpr uid_t nobody = 65534;
    return (geteuid() != 0 || (setgid(nobody) == 0 && setuid(nobody) == 0)) && check();
  });
}

// Mounts made here are not seen outside, nor the other way round.
inline bool keep_mounts_private() {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return true;
  // In a chroot "/" may be no mount. The true one is reached by stepping out, and then back in.
  const int home = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  char aside[] = "/tmp/aside-XXXXXX";
  if (home < 0 || mkdtemp(aside) == nullptr || chroot(aside) != 0) return false;
  for (int i = 0; i < 64; ++i) {
    if (chdir("..") != 0) return false;
  }
  const bool done = mount("none", ".", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return fchdir(home) == 0 && chroot(".") == 0 && rmdir(aside) == 0 && done;
}

inline constexpr const char* kNamespacesNeed =
    "this test needs a namespace of its own: be root with CAP_SYS_ADMIN, or an ordinary user "
    "outside of a chroot where the kernel allows user namespaces";

// Whether this process has mounts of its own from now on. If not, it says what that needs.
inline bool unshare_mounts() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    std::cerr << kNamespacesNeed << '\n';
    return false;
  }
  // Without a name there, nobody can own a new file.
  if (user != 0) {
    std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
  }
  if (keep_mounts_private()) return true;
  std::cerr << "this test needs mounts of its own, and cannot make those that are there private\n";
  return false;
}

// `argv` in namespaces of its own, made by unshare(1) with `flags`. Root needs no user namespace
// for that, which no chroot allows, and takes the mounts as they are: in a chroot "/" may be none.
inline std::vector<std::string> in_namespaces(std::vector<std::string> flags,
                                              const std::vector<std::string>& argv) {
  std::vector<std::string> words = {"unshare",
                                    geteuid() == 0 ? "--propagation=unchanged" : "--map-root-user"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

// A filesystem of this process alone. Where the system forbids that, the test says so by failing.
inline bool in_own_mount(const std::filesystem::path& at, const char* type, const char* options,
                         unsigned long flags, const std::function<bool()>& check) {
  return holds_in_child([&] {
    if (!unshare_mounts()) return false;
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
