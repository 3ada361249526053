#include "ledger.h"

#include "leasehold/time.h"

namespace leasehold::drill {
namespace {

Operation operation_of(Fault fault) {
  switch (fault) {
    case Fault::pause:
      return Operation::pause;
    case Fault::kill_holder:
    case Fault::kill_server:
    case Fault::restart_server:
    case Fault::failover:
      return Operation::crash;
    case Fault::cut:
      return Operation::disconnect;
    case Fault::delay:
    case Fault::lose_reply:
      return Operation::storm;
    case Fault::clock:
      return Operation::clock;
  }
  return Operation::none;
}

}  // namespace

std::int64_t now() {
  return BootClock::now().time_since_epoch().count();
}

void Cycles::late_write(std::string_view answer) {
  if (answer == "refused") {
    ++full;
    ++refused;
  } else if (answer == "wrote") {
    ++full;
    ++accepted;
  } else {
    ++unfinished;
    ++unknown;
  }
}

void Ledger::remember(LateWrite write) {
  constexpr std::size_t kEnough = 5;
  if (late_writes_.size() < kEnough) late_writes_.push_back(std::move(write));
}

void Ledger::strike(Fault fault, const std::string& victim, const std::string& lock) {
  ++times_[static_cast<std::size_t>(fault)];
  blows_.push_back({now(), Kind::fault, operation_of(fault), victim, lock});
}

void Ledger::heal(Fault fault, const std::string& victim, const std::string& lock) {
  blows_.push_back({now(), Kind::heal, operation_of(fault), victim, lock});
}

}  // namespace leasehold::drill
