#include "redis_store.h"

#include <chrono>

#include "introduction.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "used_locks.h"

namespace leasehold::redis {
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
    return fail(error_at(options.address, std::move(introduction.error())));
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
                  [this](const RequestId& request) { events().nudged(request); }) {}

void RedisStore::do_close() {
  server_->close();
  subscriber_.join();
}

// ---- acquire, renew, release ---------------------------------------------------------------

Result<AcquireReply> RedisStore::ask(const LockKeys& keys, const AcquireCall& call,
                                     const CallContext& context) {
  auto reply = TRY(server_->run(
      acquire_call(keys, call, call.queue, subscriber_.channel(), new_store_, log_.next_number()),
      context));
  return read_acquire(reply, call.ttl.length());
}

// The first to wait has a place before it has ears, and asks again when it can be told: a lock that
// is free costs no more for having been willing to wait.
Result<AcquireReply> RedisStore::ask_and_listen(const AcquireCall& call,
                                                const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const bool listens = subscriber_.began();
  auto reply = ask(keys, call, context);
  if (listens || !reply || !std::holds_alternative<Queued>(*reply)) return reply;
  subscriber_.begin(context);
  auto again = ask(keys, call, context);
  if (!again && again.error().code == ErrorCode::outcome_unknown) log_.doubt(call.request);
  return again ? std::move(again) : std::move(reply);
}

Result<AcquireReply> RedisStore::do_acquire(const AcquireCall& call, const CallContext& context) {
  auto reply = ask_and_listen(call, context);
  if (!reply && reply.error().code == ErrorCode::outcome_unknown) log_.doubt(call.request);
  return reply;
}

Result<std::vector<RenewReply>> RedisStore::do_renew(const std::vector<RenewCall>& calls,
                                                     const CallContext& context) {
  if (calls.empty()) return std::vector<RenewReply>();
  const auto reply = TRY(server_->run(renew_call(options_.prefix, calls), context));
  return read_renew(reply, calls.size());
}

Result<ReleaseReply> RedisStore::do_release(const ReleaseCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const auto reply = TRY(server_->run(
      release_call(keys, call, log_.doubts(call.request), log_.next_number()), context));
  const auto released = TRY(read_release(reply));
  log_.settle(call.request);
  return released;
}

Result<ReleaseReply> RedisStore::do_force_release(const ForceReleaseCall& call,
                                                  const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const auto reply = TRY(server_->run(force_release_call(keys, call.seen), context));
  return read_release(reply);
}

// ---- looking -------------------------------------------------------------------------------

Result<LockStatus> RedisStore::do_inspect(const InspectCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const auto reply = TRY(server_->run(inspect_call(keys), context));
  return read_status(reply, call.lock, keys);
}

Result<std::vector<LockStatus>> RedisStore::do_list(const CallContext& context) {
  const auto names = TRY(find_used_locks(*server_, options_.prefix, context));
  std::vector<LockStatus> locks;
  for (const LockName& name : names) locks.push_back(TRY(do_inspect({name}, context)));
  return locks;
}

// ---- store id and once ---------------------------------------------------------------------

Result<StoreId> RedisStore::do_rotate_store_id(const CallContext& context) {
  const StoreId id = StoreId::random(system_random());
  TRY(server_->run(rotate_command(id), context));
  return id;
}

Result<std::optional<OnceRecord>> RedisStore::do_recall(const RecallCall& call,
                                                        const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const auto reply = TRY(server_->run(recall_command(keys, call.key), context));
  return read_recall(reply);
}

Status RedisStore::do_record(const RecordCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const auto reply =
      TRY(server_->run(record_call(keys, call.request, call.key, call.what), context));
  const auto held = TRY(read_release(reply));
  if (held == ReleaseReply::released) return {};
  return fail(not_recorded(call.lock));
}

Result<std::vector<std::string>> RedisStore::do_list_keys(const ListKeysCall& call,
                                                          const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const auto reply = TRY(server_->run(list_keys_command(keys), context));
  return read_keys(reply);
}

Result<bool> RedisStore::do_forget(const ForgetCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const auto reply = TRY(server_->run(forget_command(keys, call.key), context));
  return reply.integer == 1;
}

Result<std::unique_ptr<Store>> open_redis(const Url& url, const OpenOptions& opening) {
  auto options = TRY(redis_options(url));
  return RedisStore::open(std::move(options), opening.begin());
}

}  // namespace leasehold::redis
