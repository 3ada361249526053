#include "store.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <span>
#include <type_traits>

#include "adapters/sqlite/description.h"
#include "commit_watcher.h"
#include "kit/try.h"
#include "store_base/blocking_store.h"
#include "turnstile.h"

namespace leasehold::sqlite {
namespace {

// SQLite keeps what it knows of a file's locks per process, and a forked child inherits it without
// the locks: it would be killed or hang.
bool forked_after_first_use() {
  static const pid_t first = getpid();
  return getpid() != first;
}

// A call works on the thread it comes from, but those that gather meanwhile go together in one
// transaction. A thread of its own listens for wake-ups once this process has waited for a lock.
class SqliteStore final : public BlockingStore {
 public:
  SqliteStore(std::unique_ptr<LockTable> table, StoreTraits traits, Random& random,
              std::string path)
      : BlockingStore(Calls::together),
        traits_(std::move(traits)),
        random_(random),
        commits_(std::move(path), [this]() -> StoreEvents& { return events(); }),
        table_(std::move(table)) {}
  ~SqliteStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  OnceRecords* once_records() override { return own_once_records(); }
  ChangeHints* change_hints() override { return &commits_; }

 private:
  void do_close() override {
    commits_.stop();
    table_->hurry();
    turnstile_.close();
    // A waiter that could not leave the queue, because the file was locked.
    if (wake_socket_ && table_->waits()) wake_socket_->leave_file();
    wake_socket_.reset();
    table_.reset();
  }

  void answer(std::span<const AnyAsked> batch) override {
    const CallContext limits = limits_of(batch);
    const auto pass = turnstile_.enter(limits);
    if (!pass) return;
    table_->be_patient({limits});
    // A call without an answer goes alone, and learns the reason there.
    (void)table_->answer(batch, std::ranges::any_of(batch, may_queue) ? wake_address() : nowhere());
  }

  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override {
    return with_table(context, [&](LockTable& table) {
      return table.acquire(call, call.queue ? wake_address() : nowhere());
    });
  }

  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override {
    return with_table(context, [&](LockTable& table) { return table.renew(calls); });
  }

  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override {
    return with_table(context, [&](LockTable& table) { return table.release(call); });
  }

  Result<LockStatus> do_inspect(const InspectCall& call, const CallContext& context) override {
    return with_table(context, [&](LockTable& table) { return table.inspect(call.lock); });
  }

  Result<std::vector<LockStatus>> do_list(const CallContext& context) override {
    return with_table(context, [](LockTable& table) { return table.list(); });
  }

  Result<ReleaseReply> do_force_release(const ForceReleaseCall& call,
                                        const CallContext& context) override {
    return with_table(context,
                      [&](LockTable& table) { return table.force_release(call.lock, call.seen); });
  }

  Status do_set_permits(const SetPermitsCall& call, const CallContext& context) override {
    return with_table(context,
                      [&](LockTable& table) { return table.set_permits(call.lock, call.permits); });
  }

  Result<StoreId> do_rotate_store_id(const CallContext& context) override {
    return with_table(context, [](LockTable& table) { return table.numbers().rotate_store_id(); });
  }

  Result<std::optional<OnceRecord>> do_recall(const RecallCall& call,
                                              const CallContext& context) override {
    return with_table(
        context, [&](LockTable& table) { return table.records().recall(call.lock, call.key); });
  }

  Status do_record(const RecordCall& call, const CallContext& context) override {
    return with_table(context, [&](LockTable& table) {
      return table.records().record(call.lock, call.request, call.key, call.what);
    });
  }

  Result<std::vector<std::string>> do_list_keys(const ListKeysCall& call,
                                                const CallContext& context) override {
    return with_table(context,
                      [&](LockTable& table) { return table.records().list_keys(call.lock); });
  }

  Result<bool> do_forget(const ForgetCall& call, const CallContext& context) override {
    return with_table(
        context, [&](LockTable& table) { return table.records().forget(call.lock, call.key); });
  }

  // What `work` makes of the table, which it has alone.
  template <class Work>
  std::invoke_result_t<Work, LockTable&> with_table(const CallContext& context, Work work) {
    auto pass = TRY(turnstile_.enter(context));
    table_->be_patient(
        {context, [&](Pause pause) { return pass.step_aside(context, pause).has_value(); }});
    return work(*table_);
  }

  static bool may_queue(const AnyAsked& one) {
    auto* const* acquire = std::get_if<AskedAcquire*>(&one);
    return acquire != nullptr && (*acquire)->call.queue;
  }

  static const std::string& nowhere() {
    static const std::string none;
    return none;
  }

  // Made when this process first waits, so that short programs do without.
  const std::string& wake_address() {
    if (wake_socket_) {
      wake_socket_->sign_if_due();
    } else {
      wake_socket_ =
          WakeSocket::bind(table_->wake_folder(), random_,
                           {.on_wake = [this](const RequestId& it) { events().nudged(it); },
                            .on_sign = [this] { give_sign(); }});
    }
    return wake_socket_ ? wake_socket_->address() : nowhere();
  }

  // One for all that wait in this process.
  void give_sign() {
    const auto pass = turnstile_.enter({BootClock::now() + kSignEvery, {}, /*urgent=*/true});
    if (!pass) return;
    if (table_->waits()) {
      wake_socket_->sign();
    } else {
      wake_socket_->rest();
    }
  }

  const StoreTraits traits_;
  Random& random_;
  CommitWatcher commits_;
  Turnstile turnstile_;
  std::unique_ptr<LockTable> table_;         // inside the turnstile
  std::unique_ptr<WakeSocket> wake_socket_;  // inside the turnstile
};

}  // namespace

StoreTraits traits_of(const std::string& path) {
  Url url;
  url.scheme = "sqlite";
  url.path = path;
  return {.address = url.redacted(),
          .guarantee = Guarantee::correctness,
          .why =
              "token numbers are on disk before they are granted, and the processes of one "
              "machine share one clock",
          .instead = "For more than one machine use a store with a server.",
          .queues = true,
          .keeps_after_release = true,
          .one_counter = true,
          .modes = true};
}

Result<std::unique_ptr<Store>> open_table(LockTable::Options options, const CallContext& context) {
  Random& random = *options.random;
  std::string path = options.path;
  auto table = TRY(LockTable::open(std::move(options), context));
  return std::make_unique<SqliteStore>(std::move(table), traits_of(path), random, path);
}

Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening) {
  if (forked_after_first_use()) {
    return fail(ErrorCode::unsupported,
                "a process forked from one that used a SQLite store cannot use one itself; let it "
                "exec a program first");
  }
  TRY(technology().check_options(url, kStoreUse));
  if (!url.hosts.empty() || !url.user.empty() || !url.password.empty()) {
    return fail(ErrorCode::invalid,
                "a sqlite URL names a file, not a server: sqlite:/var/lib/app/locks.db");
  }
  if (url.path.empty()) {
    return fail(ErrorCode::invalid, "a sqlite URL needs a path: sqlite:/var/lib/app/locks.db");
  }
  auto machine = TRY(this_machine());
  // Absolute: the address goes to child processes, which may run in another folder.
  std::error_code unknown_folder;
  const auto absolute = std::filesystem::absolute(url.path, unknown_folder);
  LockTable::Options options;
  options.path = unknown_folder ? url.path : absolute.string();
  options.create = opening.if_missing == IfMissing::create;
  options.machine = std::move(machine);
  options.clock = &machine_clock();
  options.random = &system_random();
  return open_table(std::move(options), opening.begin());
}

}  // namespace leasehold::sqlite
