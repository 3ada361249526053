#include "redis_store.h"

#include <chrono>

#include "introduction.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "used_locks.h"

namespace leasehold::redis {
namespace {

// The URL stands for the address in it.
Error with_url(const Options& options, const Server& server, Error error) {
  const std::string address = server.address() + ": ";
  if (error.message.starts_with(address)) error.message.erase(0, address.size());
  error.message = options.address + ": " + error.message;
  return error;
}

}  // namespace

StoreTraits redis_traits(const Options& options, const Introduction& introduction) {
  return {.address = options.address,
          .guarantee = Guarantee::efficiency,
          .why =
              "Redis answers before a replica or the disk has the lock, so a failover or a "
              "restart can grant it twice, with the same token" +
              (introduction.eviction.empty() ? "" : ", and this server " + introduction.eviction),
          .instead =
              "Use a store with durable tokens (etcd, ZooKeeper, PostgreSQL, SQLite), or protect "
              "the resource by a claim instead of a token.",
          .queues = true,
          .keeps_after_release = true};
}

Result<std::unique_ptr<Store>> RedisStore::open(Options options, const CallContext& context) {
  auto server = TRY(Server::make(options.servers.front(), options.connections));
  auto introduction = introduce(*server, StoreId::random(system_random()), context);
  if (!introduction) {
    server->close();
    return fail(with_url(options, *server, std::move(introduction.error())));
  }
  StoreTraits traits = redis_traits(options, *introduction);
  return std::unique_ptr<Store>(
      new RedisStore(std::move(options), std::move(server), std::move(traits)));
}

RedisStore::RedisStore(Options options, std::unique_ptr<Server> server, StoreTraits traits)
    : options_(std::move(options)),
      traits_(std::move(traits)),
      new_store_(StoreId::random(system_random())),
      server_(std::move(server)),
      subscriber_(*server_, "leasehold:wake:" + RequestId::random(system_random()).hex(),
                  [this](const RequestId& request) { events_->nudged(request); }) {}

template <class Reply>
void RedisStore::finish(const Completion<Reply>& done, Result<Reply> reply) const {
  if (!reply) reply = fail(with_url(options_, *server_, std::move(reply.error())));
  done(std::move(reply));
}

void RedisStore::close() {
  server_->close();
  subscriber_.join();
}

Result<LockKeys> RedisStore::keys_of(const LockName& lock) const {
  LockKeys keys = LockKeys::of(options_.prefix, lock);
  if (keys.usable()) return keys;
  return fail(ErrorCode::invalid, "lock '" + lock.str() + "' would be a key that begins with '" +
                                      std::string(kOwnKeys) + "'; such keys are Leasehold's own");
}

// ---- acquire, renew, release ---------------------------------------------------------------

Result<AcquireReply> RedisStore::ask(const LockKeys& keys, const AcquireCall& call,
                                     const CallContext& context) {
  auto reply = TRY(server_->run(
      acquire_call(keys, call, subscriber_.channel(), new_store_, log_.next_number()), context));
  return read_acquire(reply, call.ttl.length());
}

// The first to wait has a place before it has ears, and asks again when it can be told: a lock that
// is free costs no more for having been willing to wait.
Result<AcquireReply> RedisStore::ask_and_listen(const AcquireCall& call,
                                                const CallContext& context) {
  const auto keys = TRY(keys_of(call.lock));
  const bool listens = subscriber_.began();
  auto reply = ask(keys, call, context);
  if (listens || !reply || !std::holds_alternative<Queued>(*reply)) return reply;
  subscriber_.begin(context);
  auto again = ask(keys, call, context);
  if (!again && again.error().code == ErrorCode::outcome_unknown) log_.doubt(call.request);
  return again ? std::move(again) : std::move(reply);
}

void RedisStore::acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) {
  auto reply = ask_and_listen(call, context);
  if (!reply && reply.error().code == ErrorCode::outcome_unknown) log_.doubt(call.request);
  finish(done, std::move(reply));
}

void RedisStore::renew(std::vector<RenewCall> calls, CallContext context,
                       Completion<std::vector<RenewReply>> done) {
  finish<std::vector<RenewReply>>(done, [&]() -> Result<std::vector<RenewReply>> {
    if (calls.empty()) return std::vector<RenewReply>();
    auto reply = TRY(server_->run(renew_call(options_.prefix, calls), context));
    return read_renew(reply, calls.size());
  }());
}

void RedisStore::release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) {
  auto reply = [&]() -> Result<ReleaseReply> {
    const auto keys = TRY(keys_of(call.lock));
    auto answer = TRY(server_->run(
        release_call(keys, call, log_.doubts(call.request), log_.next_number()), context));
    return read_release(answer);
  }();
  if (reply) log_.settle(call.request);
  finish(done, std::move(reply));
}

void RedisStore::force_release(LockName lock, RequestId seen, CallContext context,
                               Completion<ReleaseReply> done) {
  finish<ReleaseReply>(done, [&]() -> Result<ReleaseReply> {
    const auto keys = TRY(keys_of(lock));
    auto answer = TRY(server_->run(force_release_call(keys, seen), context));
    return read_release(answer);
  }());
}

// ---- looking -------------------------------------------------------------------------------

Result<LockStatus> RedisStore::look(const LockName& lock, const CallContext& context) {
  const auto keys = TRY(keys_of(lock));
  auto reply = TRY(server_->run(inspect_call(keys), context));
  return read_status(reply, lock, keys);
}

void RedisStore::inspect(LockName lock, CallContext context, Completion<LockStatus> done) {
  finish(done, look(lock, context));
}

void RedisStore::list(CallContext context, Completion<std::vector<LockStatus>> done) {
  using Locks = std::vector<LockStatus>;
  finish<Locks>(done, [&]() -> Result<Locks> {
    const auto names = TRY(find_used_locks(*server_, options_.prefix, context));
    Locks locks;
    for (const LockName& name : names) {
      auto status = TRY(look(name, context));
      locks.push_back(std::move(status));
    }
    return locks;
  }());
}

// ---- lineage and once ----------------------------------------------------------------------

void RedisStore::rotate_lineage(CallContext context, Completion<StoreId> done) {
  finish<StoreId>(done, [&]() -> Result<StoreId> {
    const StoreId id = StoreId::random(system_random());
    TRY(server_->run(rotate_command(id), context));
    return id;
  }());
}

void RedisStore::recall(LockName lock, std::string key, CallContext context,
                        Completion<std::optional<OnceRecord>> done) {
  finish<std::optional<OnceRecord>>(done, [&]() -> Result<std::optional<OnceRecord>> {
    const auto keys = TRY(keys_of(lock));
    auto reply = TRY(server_->run(recall_command(keys, key), context));
    return read_recall(reply);
  }());
}

void RedisStore::record(LockName lock, RequestId request, std::string key, OnceRecord what,
                        CallContext context, Completion<std::monostate> done) {
  finish<std::monostate>(done, [&]() -> Result<std::monostate> {
    const auto keys = TRY(keys_of(lock));
    auto reply = TRY(server_->run(record_call(keys, request, key, what), context));
    const auto held = TRY(read_release(reply));
    if (held == ReleaseReply::released) return std::monostate();
    return fail(ErrorCode::lost,
                "the lease of lock '" + lock.str() + "' ended before the result could be stored");
  }());
}

Result<std::unique_ptr<Store>> open_redis(const Url& url, const OpenOptions& opening) {
  auto options = TRY(redis_options(url));
  return RedisStore::open(std::move(options), opening.begin());
}

}  // namespace leasehold::redis
