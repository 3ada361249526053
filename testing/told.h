// What a call with a completion has told: once, on another thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "leasehold/async.h"

namespace leasehold::testing {

template <class T>
class Told {
 public:
  // For one call. Told a second time it ends the program: a promise is kept once.
  OnResult<T> completion() {
    return [promise = promise_, caller = std::this_thread::get_id()](Result<T> result) {
      EXPECT_NE(std::this_thread::get_id(), caller) << "told inside the call";
      promise->set_value(std::move(result));
    };
  }
  operator OnResult<T>() { return completion(); }

  bool is_told() const {
    return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  Result<T> get() {
    if (future_.wait_for(std::chrono::seconds(30)) == std::future_status::timeout) {
      ADD_FAILURE() << "it was not told";
      return fail(ErrorCode::internal, "it was not told");
    }
    return future_.get();
  }

 private:
  std::shared_ptr<std::promise<Result<T>>> promise_ = std::make_shared<std::promise<Result<T>>>();
  std::future<Result<T>> future_ = promise_->get_future();
};

}  // namespace leasehold::testing
