// One call of a store operation on its way: answered exactly once, by its deadline.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "agenda.h"
#include "leasehold/store.h"

namespace leasehold::zookeeper {

// Thread safe. Answer it with no lock held: that runs the caller's completion.
class AnyCall {
 public:
  virtual ~AnyCall() = default;

  bool over() const { return over_; }
  // From here on the store may have done it.
  void sent() { sent_ = true; }
  bool was_sent() const { return sent_; }
  virtual void refuse(Error error) = 0;

 protected:
  bool end() { return !over_.exchange(true); }

 private:
  std::atomic<bool> over_ = false;
  std::atomic<bool> sent_ = false;
};

template <class Reply>
class Call final : public AnyCall, public std::enable_shared_from_this<Call<Reply>> {
 public:
  static std::shared_ptr<Call> begin(Agenda& agenda, const std::string& address,
                                     const CallContext& context, Completion<Reply> done) {
    auto call = std::make_shared<Call>(agenda, address, std::move(done));
    call->watch_the_time(context);
    return call;
  }
  // For begin().
  Call(Agenda& agenda, const std::string& address, Completion<Reply> done)
      : agenda_(agenda), address_(address), done_(std::move(done)) {}

  void answer(Reply reply) { finish(std::move(reply)); }
  void refuse(Error error) override {
    error.address = address_;
    finish(tl::unexpected<Error>(std::move(error)));
  }

 private:
  void finish(Result<Reply> result) {
    if (!end()) return;
    agenda_.cancel(timer_);
    std::exchange(done_, nullptr)(std::move(result));
  }

  void watch_the_time(const CallContext& context) {
    agenda_.add(
        context.deadline,
        [self = this->shared_from_this()](Agenda::Reason why) {
          self->cut_short(ErrorCode::unavailable, why == Agenda::Reason::closing
                                                      ? "the client is being closed"
                                                      : "no answer within the time allowed");
        },
        timer_);
    if (!context.stop.stop_possible()) return;
    on_stop_.emplace(context.stop, [weak = this->weak_from_this()] {
      if (auto self = weak.lock()) self->cut_short(ErrorCode::cancelled, "stop was requested");
    });
  }

  void cut_short(ErrorCode if_unsent, const std::string& why) {
    if (was_sent()) {
      return refuse(Error(ErrorCode::outcome_unknown, why + ", after the request was sent"));
    }
    refuse(Error(if_unsent, why));
  }

  Agenda& agenda_;
  const std::string address_;  // a stop token may ask for it when the store has gone
  Completion<Reply> done_;
  Agenda::Key timer_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace leasehold::zookeeper
