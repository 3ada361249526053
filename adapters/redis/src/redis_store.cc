#include "redis_store.h"

#include <chrono>

#include "calls.h"
#include "composer.h"
#include "key_watcher.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "server.h"
#include "store_base/blocking_store.h"
#include "subscriber.h"
#include "together.h"
#include "used_locks.h"

namespace leasehold::redis {
namespace {

// A call alone works on the thread it comes from, on a connection of its own; those that gather
// meanwhile go together on one. A thread of its own listens for wake-ups once this client has
// waited for a lock, and makes the calls they cause.
class RedisStore final : public BlockingStore {
 public:
  RedisStore(Options options, std::unique_ptr<Server> server, StoreTraits traits)
      : BlockingStore(Calls::together),
        options_(std::move(options)),
        traits_(std::move(traits)),
        server_(std::move(server)),
        subscriber_(*server_, "leasehold:wake:" + RequestId::random(system_random()).hex(),
                    [this](const RequestId& request) { events().nudged(request); }),
        key_watcher_(*server_, options_.prefix, [this]() -> StoreEvents& { return events(); }) {}

  ~RedisStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  OnceRecords* once_records() override { return own_once_records(); }
  ChangeHints* change_hints() override { return &key_watcher_; }

 private:
  void do_close() override {
    server_->close();
    subscriber_.join();
    key_watcher_.join();
  }

  // ---- acquire, renew, release ---------------------------------------------------------------

  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override {
    const auto sent = TRY(composer_.script_of(call));
    return composer_.read(TRY(server_->run(sent.script, context)), call, sent.store);
  }

  // The first to wait gets its place before it listens, and asks again once it can be woken: being
  // willing to wait costs nothing if the lock is free.
  Result<AcquireReply> queued(const AcquireCall& call, const CallContext& context,
                              Queued place) override {
    if (subscriber_.began()) return place;
    subscriber_.begin(context);
    auto again = do_acquire(call, context);
    if (again) return again;
    if (again.error().code == ErrorCode::outcome_unknown) doubts().doubt(call.request);
    return place;
  }

  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override {
    const auto reply = TRY(server_->run(TRY(composer_.script_of(calls)), context));
    return read_renew(reply, calls.size());
  }

  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override {
    const auto script = TRY(composer_.script_of(call));
    return read_release(TRY(server_->run(script, context)));
  }

  std::unique_ptr<Line::Trip> depart(std::span<const AnyAsked> batch) override {
    return together_.depart(batch);
  }

  Result<ReleaseReply> do_force_release(const ForceReleaseCall& call,
                                        const CallContext& context) override {
    const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
    const auto reply = TRY(server_->run(force_release_call(keys, call.seen), context));
    return read_release(reply);
  }

  Status do_set_permits(const SetPermitsCall& call, const CallContext& context) override {
    const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
    const auto reply = TRY(server_->run(set_permits_call(keys, call.permits), context));
    return read_set_permits(reply, call.lock);
  }

  // ---- looking -------------------------------------------------------------------------------

  Result<LockStatus> do_inspect(const InspectCall& call, const CallContext& context) override {
    const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
    const auto reply = TRY(server_->run(inspect_call(keys), context));
    return read_status(reply, call.lock, keys);
  }

  Result<std::vector<LockStatus>> do_list(const CallContext& context) override {
    const auto names = TRY(find_used_locks(*server_, options_.prefix, context));
    std::vector<LockStatus> locks;
    for (const LockName& name : names) {
      auto status = TRY(do_inspect({name}, context));
      const bool used = !status.holders.empty() || !status.waiters.empty();
      if (used || status.set_permits) locks.push_back(std::move(status));
    }
    return locks;
  }

  // ---- store id and once ---------------------------------------------------------------------

  Result<StoreId> do_rotate_store_id(const CallContext& context) override {
    const StoreId id = StoreId::random(system_random());
    TRY(server_->run(rotate_call(id), context));
    return id;
  }

  Result<std::optional<OnceRecord>> do_recall(const RecallCall& call,
                                              const CallContext& context) override {
    const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
    const auto reply = TRY(server_->run(recall_command(keys, call.key), context));
    return read_recall(reply);
  }

  Status do_record(const RecordCall& call, const CallContext& context) override {
    const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
    const auto reply =
        TRY(server_->run(record_call(keys, call.request, call.key, call.what), context));
    const auto held = TRY(read_release(reply));
    if (held == ReleaseReply::released) return {};
    return fail(not_recorded(call.lock));
  }

  Result<std::vector<std::string>> do_list_keys(const ListKeysCall& call,
                                                const CallContext& context) override {
    const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
    const auto reply = TRY(server_->run(list_keys_command(keys), context));
    return read_keys(reply);
  }

  Result<bool> do_forget(const ForgetCall& call, const CallContext& context) override {
    const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
    const auto reply = TRY(server_->run(forget_command(keys, call.key), context));
    return reply.integer == 1;
  }

  const Options options_;
  const StoreTraits traits_;
  std::unique_ptr<Server> server_;
  Subscriber subscriber_;
  KeyWatcher key_watcher_;
  Composer composer_{options_.prefix, subscriber_, doubts()};
  Together together_{*server_, composer_};
};

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
          .keeps_after_release = true,
          .one_counter = true,
          .modes = true};
}

Result<std::unique_ptr<Store>> open_redis(const Url& url, const OpenOptions& opening) {
  auto options = TRY(redis_options(url));
  auto server = TRY(Server::make(options.servers.front(), options.connections));
  auto introduction = introduce(*server, StoreId::random(system_random()), opening.begin());
  if (!introduction) {
    server->close();
    return fail(error_at(options.address, std::move(introduction.error())));
  }
  StoreTraits traits = redis_traits(options, *introduction);
  return std::make_unique<RedisStore>(std::move(options), std::move(server), std::move(traits));
}

}  // namespace leasehold::redis
