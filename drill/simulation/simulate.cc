// leasehold_simulate [--seconds N] [--seed N] [--seeds N] [--steps N] [--mutation NAME]
//
// Runs one seed after the other, and tells how far it is. Stops at the first problem: tells the
// seed, the command to see it again, and the end of the trace.
// Exit status: 0 all seeds were clean, 1 a problem, 2 wrong arguments.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "kit/text/number.h"
#include "simulation.h"

namespace leasehold::simulation {
namespace {

constexpr int kProblem = 1;
constexpr int kWrongArguments = 2;

struct Arguments {
  std::uint64_t seconds = 60;
  std::uint64_t seed = 1;
  std::uint64_t seeds = 0;  // 0: as many as fit into the time
  Options options;
};

int wrong(const std::string& sentence) {
  std::fprintf(stderr, "leasehold_simulate: %s\n", sentence.c_str());
  return kWrongArguments;
}

std::optional<Mutation> mutation(std::string_view name) {
  if (name == to_string(Mutation::none)) return Mutation::none;
  for (const Mutation each : all_mutations()) {
    if (to_string(each) == name) return each;
  }
  return std::nullopt;
}

// 0, or the exit status after a sentence.
int parse(int count, char** words, Arguments& into) {
  for (int i = 1; i < count; i += 2) {
    const std::string_view option = words[i];
    if (i + 1 == count) return wrong("'" + std::string(option) + "' needs a value");
    const std::string_view value = words[i + 1];
    if (option == "--mutation") {
      const auto found = mutation(value);
      if (!found) return wrong("there is no mutation '" + std::string(value) + "'");
      into.options.mutation = *found;
      continue;
    }
    const auto parsed = kit::number_in<std::uint64_t>(value);
    std::uint64_t* place = option == "--seconds" ? &into.seconds
                           : option == "--seed"  ? &into.seed
                           : option == "--seeds" ? &into.seeds
                           : option == "--steps" ? &into.options.steps
                                                 : nullptr;
    if (place == nullptr) return wrong("there is no option '" + std::string(option) + "'");
    if (!parsed) {
      return wrong(std::string(option) + " is '" + std::string(value) +
                   "'; it must be a whole number");
    }
    *place = *parsed;
  }
  return 0;
}

class Progress {
 public:
  void add(const Outcome& outcome) {
    ++seeds_;
    steps_ += outcome.steps;
    faults_ += outcome.faults;
    grants_ += outcome.report.grants;
    accepted_ += outcome.report.accepted;
    refused_ += outcome.report.refused;
    overlaps_ += outcome.report.overlaps.count;
    older_tokens_ += outcome.older_tokens_told;
    longest_idle_ = std::max(longest_idle_, outcome.report.liveness.longest_idle);
    if (seconds() < next_line_) return;
    next_line_ = seconds() + 10;
    line();
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  void line() const {
    std::printf("%6.0f s: %" PRIu64 " seeds, %.1f million steps, %.2f million steps/s\n", seconds(),
                seeds_, static_cast<double>(steps_) / 1e6,
                static_cast<double>(steps_) / seconds() / 1e6);
    std::fflush(stdout);
  }
  void summary() const {
    line();
    for (std::size_t i = 0; i < kFaults; ++i) {
      const auto fault = static_cast<Fault>(i);
      std::printf("  %-22s %" PRIu64 "\n", to_string(fault).data(), faults_[fault]);
    }
    std::printf("%" PRIu64 " grants; at the fence %" PRIu64 " accepted, %" PRIu64
                " refused; %" PRIu64 " overlapping beliefs; %" PRIu64
                " leases with an older token; longest idle %.3f s\n",
                grants_, accepted_, refused_, overlaps_, older_tokens_,
                static_cast<double>(longest_idle_) / 1e9);
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  double next_line_ = 10;
  std::uint64_t seeds_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t grants_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t overlaps_ = 0;
  std::uint64_t older_tokens_ = 0;
  std::int64_t longest_idle_ = 0;
  FaultCounts faults_;
};

int simulate(const Arguments& arguments, const char* program) {
  Progress progress;
  Options options = arguments.options;
  options.seed = arguments.seed;
  const auto goes_on = [&] {
    if (arguments.seeds > 0) return options.seed < arguments.seed + arguments.seeds;
    return progress.seconds() < static_cast<double>(arguments.seconds);
  };
  for (; goes_on(); ++options.seed) {
    const Outcome outcome = run(options);
    progress.add(outcome);
    if (outcome.problems.empty()) continue;
    std::printf("%s\n", to_text(outcome).c_str());
    std::printf("To see it again: %s --seeds 1 --seed %" PRIu64 " --steps %" PRIu64
                " --mutation %s\n",
                program, options.seed, options.steps, to_string(options.mutation).data());
    return kProblem;
  }
  progress.summary();
  return 0;
}

}  // namespace
}  // namespace leasehold::simulation

int main(int count, char** words) {
  leasehold::simulation::Arguments arguments;
  if (const int status = leasehold::simulation::parse(count, words, arguments)) return status;
  return leasehold::simulation::simulate(arguments, words[0]);
}
