#include "server_nemesis.h"

namespace leasehold::drill {

using namespace std::chrono_literals;

namespace {

const std::string kServer = "server";
constexpr std::uint64_t kWritesToRecover = 3;
constexpr auto kLongestRecovery = 20s;

}  // namespace

ServerNemesis::ServerNemesis(const Plan& plan, Site& site, Millis ttl, Chance& chance,
                             Ledger& ledger)
    : site_(site), ttl_(ttl), chance_(chance), ledger_(ledger) {
  for (const Fault fault : plan.faults) {
    if (fault != Fault::pause && fault != Fault::kill_holder) faults_.push_back(fault);
  }
  due_ = Clock::now() + some_time(200ms, 400ms);
}

ServerNemesis::Clock::duration ServerNemesis::some_time(Millis least, Millis most) {
  return least + Millis(chance_.below(static_cast<std::uint64_t>((most - least).count()) + 1));
}

void ServerNemesis::look_at_clock() {
  if (faults_.empty() || Clock::now() < due_) return;
  if (lasting_) {
    end();
    due_ = Clock::now() + some_time(ttl_, 3 * ttl_);
    return;
  }
  const bool works = ledger_.written >= written_before_ + kWritesToRecover;
  if (!works && Clock::now() < no_longer_) return;
  lasting_ = draw();
  site_.begin(*lasting_, chance_);
  if (*lasting_ != Fault::lose_reply) ledger_.strike(*lasting_, kServer);
  due_ = Clock::now() + some_time(ttl_ / 4, 2 * ttl_);
}

// Each comes once before one comes again.
Fault ServerNemesis::draw() {
  if (deck_.empty()) deck_ = faults_;
  const auto at = deck_.begin() + static_cast<std::ptrdiff_t>(chance_.below(deck_.size()));
  const Fault fault = *at;
  deck_.erase(at);
  return fault;
}

void ServerNemesis::end() {
  const bool happened = site_.end(*lasting_);
  if (*lasting_ == Fault::lose_reply && happened) ledger_.strike(*lasting_, kServer);
  if (happened) ledger_.heal(*lasting_, kServer);
  lasting_.reset();
  written_before_ = ledger_.written;
  no_longer_ = Clock::now() + kLongestRecovery;
}

void ServerNemesis::calm_down() {
  faults_.clear();
  if (lasting_) end();
}

}  // namespace leasehold::drill
