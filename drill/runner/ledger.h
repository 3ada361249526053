// What the nemesis did, and what came of it: for the history and for the outcome.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/drill/outcome.h"
#include "leasehold/drill/record.h"
#include "plan.h"

namespace leasehold::drill {

// As records have it: nanoseconds of the machine's boot clock.
std::int64_t now();

// One record of the nemesis: something begins to be broken, or works again.
struct Blow {
  std::int64_t time = 0;
  Kind kind = Kind::fault;
  Operation operation = Operation::none;
  std::string victim;
  std::string lock = {};
};

struct Cycles {
  // The late write of a cycle that was full until then. `answer` is the worker's word: "wrote",
  // "refused", or another, which is none: then nothing was seen, and the cycle is unfinished.
  void late_write(std::string_view answer);

  std::uint64_t full = 0;
  std::uint64_t unfinished = 0;
  std::uint64_t refused = 0;
  std::uint64_t accepted = 0;
  std::uint64_t unknown = 0;
};

class Ledger {
 public:
  void strike(Fault fault, const std::string& victim, const std::string& lock = {});
  void heal(Fault fault, const std::string& victim, const std::string& lock = {});

  std::uint64_t times(Fault fault) const { return times_[static_cast<std::size_t>(fault)]; }
  const std::vector<Blow>& blows() const { return blows_; }
  // The first ones are enough to show what happened.
  void remember(LateWrite write);
  const std::vector<LateWrite>& late_writes() const { return late_writes_; }

  Cycles cycles;
  std::uint64_t written = 0;          // writes that workers told of
  std::uint64_t reads_meanwhile = 0;  // by those who share, while a writer was frozen

 private:
  std::array<std::uint64_t, 9> times_{};
  std::vector<Blow> blows_;
  std::vector<LateWrite> late_writes_;
};

}  // namespace leasehold::drill
