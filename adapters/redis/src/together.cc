#include "together.h"

#include <utility>
#include <vector>

namespace leasehold::redis {

class Together::Trip final : public Line::Trip {
 public:
  Trip(Together& together, std::vector<Parts::Answer> answers, Convoy::Sent sent)
      : together_(together), answers_(std::move(answers)), sent_(std::move(sent)) {}

  void arrive() override {
    for (const Parts::Answer& answer : answers_) {
      auto reply = sent_.reply();
      const bool forgotten = !reply && reply.error().store_code == kUnknownScript;
      if (forgotten) {
        together_.in_full_ = true;
      } else {
        answer(std::move(reply));
      }
    }
  }
  // The connection goes on as long as nobody else waits for one.
  bool can_be_followed() const override {
    return !sent_.convoy().is_over() && !together_.server_.has_waiting();
  }

 private:
  Together& together_;
  const std::vector<Parts::Answer> answers_;
  Convoy::Sent sent_;
};

std::unique_ptr<Line::Trip> Together::depart(std::span<const AnyAsked> batch) {
  const CallContext limits = limits_of(batch);
  auto convoy = convoy_.lock();
  if (!convoy || convoy->is_over()) convoy = Convoy::open(server_, limits);
  if (!convoy) return nullptr;
  convoy_ = convoy;
  Parts parts = composer_.begin(batch);
  if (parts.scripts.empty()) return nullptr;
  auto sent = convoy->send(limits, parts.scripts, std::exchange(in_full_, false));
  if (!sent) return nullptr;
  return std::make_unique<Trip>(*this, std::move(parts.answers), std::move(*sent));
}

}  // namespace leasehold::redis
