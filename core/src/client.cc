#include "leasehold/client.h"

#include <system_error>

#include "blocking_answer.h"
#include "client_core.h"
#include "kit/try.h"
#include "leasehold/registry.h"
#include "once_access.h"

namespace leasehold {
namespace {

template <class Reply, class Send>
Result<Reply> ask(detail::ClientCore& core, const CallOptions& options, Send send) {
  TRY(core.check_process());
  TRY(detail::check_store_timeout(options.store_timeout));
  return detail::wait_for_answer<Reply>([&](auto done) {
    send(core.store(), CallContext{core.clock().now() + options.store_timeout, options.stop},
         std::move(done));
  });
}

Result<OnceRecords*> records_of(detail::ClientCore& core) {
  TRY(detail::check_records(core));
  return core.store().once_records();
}

Result<OnceRecords*> records_under(detail::ClientCore& core, const std::string& key) {
  TRY(OnceKey::parse(key));
  return records_of(core);
}

}  // namespace

Client::Client(std::unique_ptr<Store> store, ConnectOptions options)
    : core_(detail::ClientCore::make(std::move(store), std::move(options))) {}
Client::~Client() = default;
Client::Client(const Client&) = default;
Client& Client::operator=(const Client&) = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

const StoreTraits& Client::store() const {
  return core_->traits();
}

std::optional<Error> Client::renewal_error() const {
  return core_->renewal_error();
}

Result<Lease> Client::acquire(const LockName& lock, AcquireOptions options) {
  return core_->acquire(lock, options);
}

Result<Lease> Client::acquire(std::string_view lock, AcquireOptions options) {
  auto name = TRY(LockName::parse(lock));
  return core_->acquire(name, options);
}

Result<FencedLease> Client::acquire_fenced(const LockName& lock, AcquireOptions options) {
  return core_->acquire_fenced(lock, options);
}

Result<FencedLease> Client::acquire_fenced(std::string_view lock, AcquireOptions options) {
  auto name = TRY(LockName::parse(lock));
  return core_->acquire_fenced(name, options);
}

Result<LockStatus> Client::inspect(const LockName& lock, CallOptions options) {
  return ask<LockStatus>(*core_, options, [&](Store& store, CallContext context, auto done) {
    store.inspect(lock, std::move(context), std::move(done));
  });
}

Result<std::vector<LockStatus>> Client::list(CallOptions options) {
  return ask<std::vector<LockStatus>>(*core_, options,
                                      [&](Store& store, CallContext context, auto done) {
                                        store.list(std::move(context), std::move(done));
                                      });
}

Result<ReleaseReply> Client::force_release(const LockName& lock, const RequestId& seen,
                                           CallOptions options) {
  return ask<ReleaseReply>(*core_, options, [&](Store& store, CallContext context, auto done) {
    store.force_release(lock, seen, std::move(context), std::move(done));
  });
}

Result<Watch> Client::watch(const LockName& lock, LockObserver observer, WatchOptions options) {
  return core_->watch(lock, std::move(observer), options);
}

Result<Watch> Client::watch(std::string_view lock, LockObserver observer, WatchOptions options) {
  auto name = TRY(LockName::parse(lock));
  return core_->watch(name, std::move(observer), options);
}

Result<Watch> Client::watch_prefix(std::string_view prefix, LocksObserver observer,
                                   WatchOptions options) {
  return core_->watch_prefix(prefix, std::move(observer), options);
}

Status Client::set_permits(const LockName& lock, std::optional<std::int64_t> permits,
                           CallOptions options) {
  if (permits) TRY(Mode::permit_of(*permits).check());
  TRY(core_->check_modes());
  TRY(ask<std::monostate>(*core_, options, [&](Store& store, CallContext context, auto done) {
    store.set_permits(lock, permits, std::move(context), std::move(done));
  }));
  return {};
}

Result<StoreId> Client::rotate_store_id(CallOptions options) {
  return ask<StoreId>(*core_, options, [&](Store& store, CallContext context, auto done) {
    store.rotate_store_id(std::move(context), std::move(done));
  });
}

Result<std::optional<OnceRecord>> Client::recall(const LockName& lock, std::string key,
                                                 CallOptions options) {
  OnceRecords& records = *TRY(records_under(*core_, key));
  return ask<std::optional<OnceRecord>>(
      *core_, options, [&](Store&, CallContext context, auto done) {
        records.recall(lock, std::move(key), std::move(context), std::move(done));
      });
}

Status Client::record(const Lease& lease, std::string key, OnceRecord what, CallOptions options) {
  OnceRecords& records = *TRY(records_under(*core_, key));
  TRY(ask<std::monostate>(*core_, options, [&](Store&, CallContext context, auto done) {
    records.record(lease.lock(), lease.request(), std::move(key), std::move(what),
                   std::move(context), std::move(done));
  }));
  return {};
}

Result<std::vector<std::string>> Client::recorded_keys(const LockName& lock, CallOptions options) {
  OnceRecords& records = *TRY(records_of(*core_));
  return ask<std::vector<std::string>>(
      *core_, options, [&](Store&, CallContext context, auto done) {
        records.list_keys(lock, std::move(context), std::move(done));
      });
}

Result<bool> Client::forget(const LockName& lock, std::string key, CallOptions options) {
  OnceRecords& records = *TRY(records_under(*core_, key));
  return ask<bool>(*core_, options, [&](Store&, CallContext context, auto done) {
    records.forget(lock, std::move(key), std::move(context), std::move(done));
  });
}

Result<Client> connect(std::string_view url, ConnectOptions options) {
  return connect(url, std::move(options), Registry::standard());
}

Result<Client> connect(std::string_view url, ConnectOptions options, const Registry& registry) {
  TRY(detail::check_store_timeout(options.store_timeout));
  try {
    auto store = TRY(registry.open_store(url, {.if_missing = options.if_missing,
                                               .store_timeout = options.store_timeout,
                                               .stop = options.stop}));
    return Client(std::move(store), std::move(options));
  } catch (const std::system_error& error) {  // no thread or descriptor is left
    return fail(detail::cannot_start(error));
  }
}

}  // namespace leasehold
