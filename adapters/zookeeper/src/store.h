// The lock store on a ZooKeeper ensemble.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agenda.h"
#include "call.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/registry.h"
#include "leasehold/store.h"
#include "leasehold/url.h"
#include "lock_watches.h"
#include "node_names.h"
#include "options.h"
#include "place.h"
#include "queue.h"
#include "quiet_folders.h"
#include "session.h"

namespace leasehold::zookeeper {

// No call blocks: replies come on the completion threads of the sessions, one each, and on the
// agenda's thread for deadlines. What may block has a thread of its own: to look host names up, and
// to end sessions. Only close() waits for it.
class ZookeeperStore final : public Store, private OnceRecords, private SessionListener {
 public:
  explicit ZookeeperStore(Options options);
  ~ZookeeperStore() override { close(); }

  // Returns when the server answers as it should, or with `unavailable`: at the deadline, or sooner
  // if all hosts refuse the connection.
  [[nodiscard]] Status connect(const CallContext& context);

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents& events) override { events_ = &events; }
  void close() override;
  void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) override;
  void renew(std::vector<RenewCall> calls, CallContext context,
             Completion<std::vector<RenewReply>> done) override;
  void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) override;
  void inspect(LockName lock, CallContext context, Completion<LockStatus> done) override;
  void list(CallContext context, Completion<std::vector<LockStatus>> done) override;
  void force_release(LockName lock, RequestId seen, CallContext context,
                     Completion<ReleaseReply> done) override;
  void rotate_store_id(CallContext context, Completion<StoreId> done) override;
  void set_permits(LockName lock, std::optional<std::int64_t> permits, CallContext context,
                   Completion<std::monostate> done) override;
  OnceRecords* once_records() override { return this; }
  ChangeHints* change_hints() override { return &lock_watches_; }

 private:
  void recall(LockName lock, std::string key, CallContext context,
              Completion<std::optional<OnceRecord>> done) override;
  void record(LockName lock, RequestId request, std::string key, OnceRecord what,
              CallContext context, Completion<std::monostate> done) override;
  void list_keys(LockName lock, CallContext context,
                 Completion<std::vector<std::string>> done) override;
  void forget(LockName lock, std::string key, CallContext context, Completion<bool> done) override;

  struct Ask;       // an acquire on its way
  struct Leave;     // a release on its way
  struct Renewal;   // a renew on its way
  struct Overview;  // a status being put together
  struct Permits;   // a number of them on its way
  struct Visit;     // the first connection
  class Turn;       // the right to do something to a place's node
  using AskPtr = std::shared_ptr<Ask>;
  using SessionPtr = std::shared_ptr<Session>;
  using RemovedPtr = std::function<void(int rc)>;

  void session_ready(const SessionPtr& session) override;
  void session_over(const SessionPtr& session) override;
  void session_broken(const Session& session) override;
  void path_touched(const Session& session, const std::string& path) override;
  void node_touched(const RequestId& watching) override;
  void tell_ended(const RequestId& request);
  void tell_nudged(const RequestId& request);

  template <class Reply>
  std::shared_ptr<Call<Reply>> begin(const CallContext& context, Completion<Reply> done) {
    return Call<Reply>::begin(agenda_, traits_.address, context, std::move(done));
  }
  std::string once_folder_of(const LockName& lock) const;
  std::string folder_of(const LockName& lock) const {
    return options_.base + "/" + encode(lock.str());
  }
  Result<SessionPtr> session_of(Millis timeout) LEASEHOLD_EXCLUDES(sessions_mutex_);
  void look_at_hosts(const std::shared_ptr<Visit>& visit, BootTime when);
  // The session for everything but leases, when it is ready; answers the call if it will not be.
  void with_session(const std::shared_ptr<AnyCall>& call,
                    std::function<void(const SessionPtr&)> then);
  void retire(const SessionPtr& session);
  void retire_unused(Agenda::Reason reason);
  bool closed() const LEASEHOLD_EXCLUDES(mutex_);

  // Finds or makes the place, and does `work` to it when it is its turn.
  void take_turn_for(const AcquireCall& call, std::function<void(Turn)> work)
      LEASEHOLD_EXCLUDES(mutex_);
  PlacePtr find(const RequestId& request) const LEASEHOLD_EXCLUDES(mutex_);
  void take_turn(const PlacePtr& place, std::function<void(Turn)> work) LEASEHOLD_EXCLUDES(mutex_);
  void end_turn(const PlacePtr& place) LEASEHOLD_EXCLUDES(mutex_);

  void ask(const AskPtr& it);
  void ask_in(const AskPtr& it, const SessionPtr& session);
  void stand(const AskPtr& it, const SessionPtr& session);
  void stood(const AskPtr& it, const SessionPtr& session, int rc, int folder_rc,
             const std::string& path, const NodeStat& stat);
  void remember_folder(const std::string& folder) LEASEHOLD_REQUIRES(mutex_);
  void watch_quiet_folder(const AskPtr& it, const SessionPtr& session);
  bool is_alone_by_number(const AskPtr& it, const SessionPtr& session);
  void note_company(const AskPtr& it, const SessionPtr& session,
                    const std::vector<std::string>& names);
  void look(const AskPtr& it, const SessionPtr& session);
  void read_queue(const AskPtr& it, const SessionPtr& session, Connection::Listed done);
  void recognise(const AskPtr& it, const SessionPtr& session);
  void judge(const AskPtr& it, const SessionPtr& session, int rc,
             const std::vector<std::string>& names, const NodeStat& at);
  void grant(const AskPtr& it, const SessionPtr& session);
  void confirm(const AskPtr& it, const SessionPtr& session);
  void take_slot(const AskPtr& it, const SessionPtr& session, const Queue& queue, std::size_t place,
                 const Slots& slots);
  void wait_for(const AskPtr& it, const SessionPtr& session, const std::string& before,
                const std::string& first, bool one_permit);
  void wait_for_anybody(const AskPtr& it, const SessionPtr& session, const std::string& first);
  void tell_queued(const AskPtr& it, Millis recheck, const std::string& ahead);
  void stop_watching_folder(const AskPtr& it, const SessionPtr& session);
  bool tells_who_is_first(const AskPtr& it);
  void step_back(const AskPtr& it, const SessionPtr& session, const std::string& first);
  void turn_away(const AskPtr& it, const SessionPtr& session, Error why);
  void withdraw(const AskPtr& it, const SessionPtr& session, std::function<void()> then);
  void ask_anew(const AskPtr& it);
  void fail_ask(const AskPtr& it, int rc, const std::string& doing);

  void leave(const std::shared_ptr<Leave>& it);
  void search_and_remove(const std::shared_ptr<Leave>& it);
  void remove_node(const PlacePtr& place, const SessionPtr& session, RemovedPtr done);
  void node_removed(const PlacePtr& place, const SessionPtr& session, int rc);
  void look_again(const PlacePtr& place, BootTime when) LEASEHOLD_REQUIRES(mutex_);
  void look_at_expiry(const PlacePtr& place, Agenda::Reason reason) LEASEHOLD_EXCLUDES(mutex_);
  void clean(const std::shared_ptr<Turn>& turn);

  void renew_in(const std::shared_ptr<Renewal>& it, const SessionPtr& session,
                std::vector<std::size_t> which);
  void renewed(const std::shared_ptr<Renewal>& it, const SessionPtr& session,
               std::vector<std::size_t> which, int rc, const std::vector<Stepped>& each);
  void renew_again(const std::shared_ptr<Renewal>& it, const SessionPtr& session,
                   std::vector<std::size_t> which);

  // The names of those who stand there, also in the folder of leases.
  static void list_queue(const SessionPtr& session, const std::string& folder, bool watch,
                         Connection::Listed done);
  void put_permits(const std::shared_ptr<Permits>& it, const SessionPtr& session);
  void put_permits_in(const std::shared_ptr<Permits>& it, const SessionPtr& session,
                      const std::vector<std::string>& names);
  void transact_permits(const std::shared_ptr<Permits>& it, const SessionPtr& session,
                        std::vector<Step> steps);
  void overview(const SessionPtr& session, const LockName& lock,
                std::function<void(Result<LockStatus>)> done);
  void write_record(const std::shared_ptr<Call<std::monostate>>& call, const PlacePtr& place,
                    const SessionPtr& session, const std::string& path, const std::string& data,
                    bool made_folder);

  const Options options_;
  const StoreTraits traits_;
  std::atomic<StoreEvents*> events_ = nullptr;

  mutable Mutex mutex_;
  std::unordered_map<RequestId, PlacePtr> places_ LEASEHOLD_GUARDED_BY(mutex_);
  std::unordered_set<std::string> folders_ LEASEHOLD_GUARDED_BY(mutex_);  // that were there
  QuietFolders quiet_ LEASEHOLD_GUARDED_BY(mutex_);
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;

  struct Kept {
    SessionPtr session;
    BootTime used;
  };
  Mutex sessions_mutex_;  // taken before mutex_
  std::map<Millis, Kept> sessions_ LEASEHOLD_GUARDED_BY(sessions_mutex_);
  std::vector<SessionPtr> retired_ LEASEHOLD_GUARDED_BY(sessions_mutex_);
  bool no_more_sessions_ LEASEHOLD_GUARDED_BY(sessions_mutex_) = false;

  LockWatches lock_watches_;
  Agenda chores_;  // what may block
  Agenda agenda_;  // what must be in time. Last: their threads use the rest
};

// Ends with who has it at the latest, whatever becomes of the reply that was waited for. End it
// with no lock held: that begins the next.
class ZookeeperStore::Turn {
 public:
  Turn() = default;
  Turn(ZookeeperStore& store, PlacePtr place) : store_(&store), place_(std::move(place)) {}
  ~Turn() { end(); }
  Turn(Turn&& other) noexcept = default;
  Turn& operator=(Turn&& other) noexcept {
    std::swap(store_, other.store_);
    place_.swap(other.place_);
    return *this;
  }

  const PlacePtr& place() const { return place_; }
  void end() {
    if (const PlacePtr ending = std::exchange(place_, nullptr)) store_->end_turn(ending);
  }

 private:
  ZookeeperStore* store_ = nullptr;
  PlacePtr place_;  // none: it has ended
};

// Of every ZooKeeper store.
StoreTraits zookeeper_traits(const Options& options);

// "zookeeper://user:password@host:port,host:port/folder"
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::zookeeper
