// The calls of a client as asio's asynchronous operations: with completion tokens, and so in
// coroutines by co_await. Headers only, for asio without Boost, 1.22 or later. Leasehold is not
// built with asio and does not need it: who includes this does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>

#include "leasehold/async.h"

namespace leasehold {
namespace detail {

// A call on its way to a handler: on the handler's executor, which has work until then. The
// handler's cancellation slot and the caller's stop token both stop it.
template <class T, class Handler>
class AsioCall {
 public:
  AsioCall(Handler handler, std::stop_token stop)
      : handler_(std::move(handler)), work_(asio::make_work_guard(handler_)) {
    if (auto slot = asio::get_associated_cancellation_slot(handler_); slot.is_connected()) {
      slot.assign([either = either_](asio::cancellation_type) mutable { either.request_stop(); });
    }
    on_stop_.emplace(std::move(stop), Forward{either_});
  }

  std::stop_token stop() const { return either_.get_token(); }

  static void finish(std::unique_ptr<AsioCall> call, Result<T> result) {
    const auto executor = call->work_.get_executor();
    asio::dispatch(executor, [call = std::move(call), result = std::move(result)]() mutable {
      call->on_stop_.reset();
      asio::get_associated_cancellation_slot(call->handler_).clear();
      Handler handler = std::move(call->handler_);
      const auto work = std::move(call->work_);
      call.reset();  // before the handler runs, as asio's own operations
      std::move(handler)(std::move(result));
    });
  }

 private:
  struct Forward {
    std::stop_source to;
    void operator()() { to.request_stop(); }
  };
  using Executor = asio::associated_executor_t<Handler>;

  Handler handler_;
  asio::executor_work_guard<Executor> work_;
  std::stop_source either_;
  std::optional<std::stop_callback<Forward>> on_stop_;
};

// `call` takes options and what is to be done with the result.
template <class T, class Token, class Options, class Call>
auto initiate(Token&& token, Options options, Call call) {
  return asio::async_initiate<Token, void(Result<T>)>(
      [](auto&& handler, Options with, Call begin) {
        using Going = AsioCall<T, std::decay_t<decltype(handler)>>;
        auto going =
            std::make_unique<Going>(std::forward<decltype(handler)>(handler), std::move(with.stop));
        with.stop = going->stop();
        std::move(begin)(std::move(with),
                         OnResult<T>([going = std::move(going)](Result<T> result) mutable {
                           Going::finish(std::move(going), std::move(result));
                         }));
      },
      token, std::move(options), std::move(call));
}

}  // namespace detail

// Each is the call of the same name in AsyncClient, with the completion signature void(Result<T>):
// `auto lease = co_await async_acquire(client, "job", {.wait = 5s}, asio::use_awaitable)` is a
// Result<Lease>. The handler runs on its associated executor; without one it runs on the client's
// thread for completions, with the rules of AsyncClient. Cancelling the operation, of whatever
// type, and the options' stop token both end it with `cancelled`, holding nothing.
//
// As for every operation of asio, the executor's context must live until the handler has run. An
// operation keeps its client alive until it has begun; one that is awaited does until its end.

template <class Token>
auto async_acquire(const Client& client, const LockName& lock, AcquireOptions options,
                   Token&& token) {
  return detail::initiate<Lease>(
      token, std::move(options),
      [async = AsyncClient(client), lock](AcquireOptions with, OnResult<Lease> done) {
        async.acquire(lock, std::move(with), std::move(done));
      });
}
template <class Token>
auto async_acquire(const Client& client, std::string_view lock, AcquireOptions options,
                   Token&& token) {
  return detail::initiate<Lease>(token, std::move(options),
                                 [async = AsyncClient(client), lock = std::string(lock)](
                                     AcquireOptions with, OnResult<Lease> done) {
                                   async.acquire(lock, std::move(with), std::move(done));
                                 });
}

template <class Token>
auto async_acquire_fenced(const Client& client, const LockName& lock, AcquireOptions options,
                          Token&& token) {
  return detail::initiate<FencedLease>(
      token, std::move(options),
      [async = AsyncClient(client), lock](AcquireOptions with, OnResult<FencedLease> done) {
        async.acquire_fenced(lock, std::move(with), std::move(done));
      });
}
template <class Token>
auto async_acquire_fenced(const Client& client, std::string_view lock, AcquireOptions options,
                          Token&& token) {
  return detail::initiate<FencedLease>(token, std::move(options),
                                       [async = AsyncClient(client), lock = std::string(lock)](
                                           AcquireOptions with, OnResult<FencedLease> done) {
                                         async.acquire_fenced(lock, std::move(with),
                                                              std::move(done));
                                       });
}

// The lease is the operation's from the call on, also before it is awaited.
template <class Token>
auto async_release(const Client& client, Lease&& lease, CallOptions options, Token&& token) {
  return detail::initiate<ReleaseOutcome>(
      token, std::move(options),
      std::bind_front(&AsyncClient::release, AsyncClient(client), std::move(lease)));
}
// If the store cannot keep a lock, it is released.
template <class Token>
auto async_release_after(const Client& client, Lease&& lease, Millis keep_for, CallOptions options,
                         Token&& token) {
  return detail::initiate<ReleaseOutcome>(
      token, std::move(options),
      std::bind_front(&AsyncClient::release_after, AsyncClient(client), std::move(lease),
                      keep_for));
}

template <class Token>
auto async_inspect(const Client& client, const LockName& lock, CallOptions options, Token&& token) {
  return detail::initiate<LockStatus>(
      token, std::move(options), std::bind_front(&AsyncClient::inspect, AsyncClient(client), lock));
}
template <class Token>
auto async_list(const Client& client, CallOptions options, Token&& token) {
  return detail::initiate<std::vector<LockStatus>>(
      token, std::move(options), std::bind_front(&AsyncClient::list, AsyncClient(client)));
}
template <class Token>
auto async_force_release(const Client& client, const LockName& lock, const RequestId& seen,
                         CallOptions options, Token&& token) {
  return detail::initiate<ReleaseReply>(
      token, std::move(options),
      std::bind_front(&AsyncClient::force_release, AsyncClient(client), lock, seen));
}
template <class Token>
auto async_set_permits(const Client& client, const LockName& lock,
                       std::optional<std::int64_t> permits, CallOptions options, Token&& token) {
  return detail::initiate<void>(
      token, std::move(options),
      std::bind_front(&AsyncClient::set_permits, AsyncClient(client), lock, permits));
}
template <class Token>
auto async_rotate_store_id(const Client& client, CallOptions options, Token&& token) {
  return detail::initiate<StoreId>(
      token, std::move(options),
      std::bind_front(&AsyncClient::rotate_store_id, AsyncClient(client)));
}

template <class Token>
auto async_recall(const Client& client, const LockName& lock, std::string key, CallOptions options,
                  Token&& token) {
  return detail::initiate<std::optional<OnceRecord>>(
      token, std::move(options),
      std::bind_front(&AsyncClient::recall, AsyncClient(client), lock, std::move(key)));
}
template <class Token>
auto async_record(const Client& client, const Lease& lease, std::string key, OnceRecord what,
                  CallOptions options, Token&& token) {
  return detail::initiate<void>(
      token, std::move(options),
      [async = AsyncClient(client), lock = lease.lock(), request = lease.request(),
       key = std::move(key), what = std::move(what)](CallOptions with, OnResult<void> done) {
        async.record(lock, request, key, what, std::move(with), std::move(done));
      });
}
template <class Token>
auto async_recorded_keys(const Client& client, const LockName& lock, CallOptions options,
                         Token&& token) {
  return detail::initiate<std::vector<std::string>>(
      token, std::move(options),
      std::bind_front(&AsyncClient::recorded_keys, AsyncClient(client), lock));
}
template <class Token>
auto async_forget(const Client& client, const LockName& lock, std::string key, CallOptions options,
                  Token&& token) {
  return detail::initiate<bool>(
      token, std::move(options),
      std::bind_front(&AsyncClient::forget, AsyncClient(client), lock, std::move(key)));
}

}  // namespace leasehold
