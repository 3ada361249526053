// `leasehold run x -- true` beside `flock /tmp/x true`, and how soon `leasehold hold x` is ready,
// in turns.
//
//   run_bench LEASEHOLD_PROGRAM [RUNS]
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "bench/report.h"
#include "leasehold/process/child.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold::bench;
using leasehold::process::Child;

// Milliseconds from start to end. posix_spawn: the price of fork() would hide the difference.
double run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  pid_t pid = 0;
  int status = 0;
  if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) {
    stop("cannot run " + words.front());
  }
  waitpid(pid, &status, 0);
  const auto end = std::chrono::steady_clock::now();
  if (status != 0) stop(words.front() + " failed");
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

// Milliseconds from its start until it holds the lock.
double ready(const std::string& program) {
  const auto begin = std::chrono::steady_clock::now();
  auto holder = Child::start({.argv = {program, "hold", "x"},
                              .in = leasehold::process::Piped{},
                              .out = leasehold::process::Piped{}});
  if (!holder) stop(holder.error().message);
  const std::string told = leasehold::process::read_until(holder->out().get(), "\n");
  const auto end = std::chrono::steady_clock::now();
  holder->in().reset();
  if (!told.starts_with("{\"event\":\"held\"") || holder->wait().shell_status() != 0) {
    stop("leasehold hold failed: " + told);
  }
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) stop("usage: run_bench LEASEHOLD_PROGRAM [RUNS]");
  const int runs = argc > 2 ? std::atoi(argv[2]) : 400;
  const leasehold::rig::TempFolder folder;
  const std::string file = folder.file("flock");
  setenv("LEASEHOLD_STORE", ("sqlite:" + folder.file("locks.db")).c_str(), 1);

  std::vector<double> leasehold;
  std::vector<double> flock;
  std::vector<double> holds;
  for (int i = -10; i < runs; ++i) {
    const double ours = run({argv[1], "run", "x", "--", "true"});
    const double theirs = run({"flock", file, "true"});
    const double held = ready(argv[1]);
    if (i < 0) continue;  // the first make the file and warm the caches
    leasehold.push_back(ours);
    flock.push_back(theirs);
    holds.push_back(held);
  }
  const double ours = percentile(leasehold, 0.5);
  const double theirs = percentile(flock, 0.5);
  report({"leasehold run x -- true, median", format(ours, "%.2f ms"), ""});
  report({"flock /tmp/x true, median", format(theirs, "%.2f ms"), ""});
  report({"leasehold run beside flock(1)", format(ours / theirs, "%.2f x the time"), "<= 3 x",
          ours / theirs <= 3});
  const double until_held = percentile(holds, 0.5);
  report({"leasehold hold x until it is held, median", format(until_held, "%.2f ms"), ""});
  report({"leasehold hold ready beside leasehold run true",
          format(until_held / ours, "%.2f x the time"), "<= 2 x", until_held / ours <= 2});
  return 0;
}
