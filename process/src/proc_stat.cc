#include "proc_stat.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "kit/system/fd.h"
#include "kit/text/number.h"

namespace leasehold::process {

std::optional<ProcStat> read_stat(pid_t pid) {
  const kit::Fd file(
      open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t got = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (got <= 0) return std::nullopt;
  text[got] = '\0';
  // Field 2 may hold spaces and parentheses, so search from the end.
  const char* rest = std::strrchr(text, ')');
  ProcStat it;
  if (!rest ||
      std::sscanf(rest + 1, " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
                  &it.state, &it.parent, &it.group, &it.session, &it.threads) != 5) {
    return std::nullopt;
  }
  return it;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  while (const dirent* entry = processes ? readdir(processes.get()) : nullptr) {
    if (const auto pid = kit::number_in<pid_t>(entry->d_name)) all.push_back(*pid);
  }
  return all;
}

}  // namespace leasehold::process
