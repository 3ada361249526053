// What an adapter implements. An adapter only speaks to its store: renewal, waiting, retries and
// loss are the engine's, once, for all stores.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/mode.h"
#include "leasehold/name.h"
#include "leasehold/time.h"
#include "leasehold/token.h"
#include "leasehold/ttl.h"

namespace leasehold {

// What to do if a store that is a file is not there yet. Stores with a server ignore it.
enum class IfMissing { create, refuse };

// What a store's tokens are worth.
enum class Guarantee {
  efficiency,   // a double run wastes work
  correctness,  // a double run does damage, and the token with a fence prevents it
};
std::string_view to_string(Guarantee guarantee);

struct StoreTraits {
  std::string address;  // the URL without secrets
  Guarantee guarantee = Guarantee::efficiency;
  std::string why;                   // one sentence: what makes the guarantee so
  std::string instead;               // one sentence: what to do if more is needed
  bool queues = false;               // waits first come, first served, and nudges the next
  bool keeps_after_release = false;  // ReleaseCall::keep_for is honoured without a living holder
  // All its locks draw their tokens from one counter: those of two locks can be compared, and of
  // two that were granted without waiting the later one is larger.
  bool one_counter = false;
  // Grants the modes shared and permit, and keeps notes.
  bool modes = false;
  std::string why_no_modes = "it knows only one holder of a lock";
};

struct AcquireCall {
  LockName lock;
  RequestId request;
  OwnerLabel owner;
  Ttl ttl;
  bool queue = false;  // if it cannot be granted, take or keep a place in the queue
  Mode mode = {};      // is in order; other than exclusive, and with a note, only if the traits say
  Note note = {};      // that the store has modes
};
struct Granted {
  TokenNumber token;
  StoreId store;  // as it was at the grant
  Millis ttl;     // it lasts at least so long, counted from before the call that made it
  bool fresh;     // made by this very call; false: by an earlier one, or that cannot be told
  std::optional<Slot> slot = {};  // of a permit: the lowest that was free
};
struct Queued {
  Millis recheck_after;  // ask again then, even if no nudge comes
  std::string ahead;     // as in Busy
};
struct Busy {
  std::string ahead;  // label of the holder or of who is next, for the message; may be empty
};
using AcquireReply = std::variant<Granted, Queued, Busy>;

struct RenewCall {
  LockName lock;
  RequestId request;
  Ttl ttl;
};
enum class RenewReply {
  renewed,
  gone,
  unknown,  // of this one nothing is known: it will be asked again
};

struct ReleaseCall {
  LockName lock;
  RequestId request;
  Millis keep_for{0};  // end the grant that much later instead of now
};
enum class ReleaseReply { released, not_held };

struct WaiterStatus {
  RequestId request;
  std::string owner;
  Mode mode = {};
  std::string note = {};
};
struct LockStatus {
  LockName lock;
  std::optional<StoreId> store;  // the store's part of the lineage of the next token
  // Of the last grant. After its end the store may forget it, a minute later or at once.
  std::optional<TokenNumber> last_token;
  struct Holder {
    RequestId request;
    TokenNumber token;
    std::string owner;
    Millis held_for;
    Millis remaining;   // by the store's clock
    bool kept = false;  // released with keep_for: nobody works under it any more
    // Taken by another program with the store's own means: it has no token of ours, and how long it
    // has been there is not known. `request` is made up, for force_release().
    bool foreign = false;
    // Of a foreign one: after `remaining`, never if its program does not end it, or not known.
    enum class End { unknown, timed, never };
    End foreign_end = End::unknown;
    bool at_most = false;  // the store does not tell the time left; `remaining` is a bound of it
    Mode mode = {};
    std::optional<Slot> slot = {};
    std::string note = {};
  };
  std::vector<Holder> holders = {};   // by their tokens; more than one only if they share
  std::vector<WaiterStatus> waiters;  // in queue order
  std::string known_as = {};  // what the store's own tools call it, to share the lock with them
  // No token of this lock was above it up to now, and every later one is. Nothing: it cannot tell.
  std::optional<std::int64_t> counted_to = {};
  std::optional<std::int64_t> set_permits = {};  // by an operator: set_permits()

  // The one with the lowest token, if anybody holds it.
  std::optional<Holder> holder() const {
    return holders.empty() ? std::nullopt : std::optional(holders.front());
  }
};

// The outcome of something that was done once under a key, for later repeats. Any bytes.
struct OnceRecord {
  std::string parameters;
  std::string result;
};

// How long a call may take.
struct CallContext {
  BootTime deadline;
  std::stop_token stop;
  // It keeps leases alive: where calls stand in line, it goes before those that do not.
  bool urgent = false;
};

template <class Reply>
using Completion = std::function<void(Result<Reply>)>;

// What a store tells the engine unasked. Thread safe; may be called from any thread until
// Store::close returned, but with no lock held: the engine may call the store on that thread before
// it returns, and such a call may block up to its deadline.
class StoreEvents {
 public:
  virtual ~StoreEvents() = default;
  // This queued request may be granted now: ask again.
  virtual void nudged(const RequestId& request) = 0;
  // This grant is over by the store's own word.
  virtual void ended(const RequestId& request) = 0;

  // Of a store with ChangeHints. These never block, and may come too often.
  // The holders of this lock, or of any, may have changed.
  virtual void changed([[maybe_unused]] const LockName& lock) {}
  virtual void any_changed() {}
  // From now on each change of what it watches is told; and no longer, so that some may have been
  // missed since a moment ago.
  virtual void tells_changes() {}
  virtual void tells_no_changes([[maybe_unused]] const Error& why) {}
};

// Says early that somebody should look at a lock again. A store may offer it; who watches looks by
// himself besides, so a hint may get lost. Called by one thread at a time, until Store::close() is;
// does not block.
class ChangeHints {
 public:
  virtual ~ChangeHints() = default;
  // From now on, until unwatch(), StoreEvents is told when the holders of this lock may have
  // changed, and once when that begins: something may have happened before.
  virtual void watch(const LockName& lock) = 0;
  virtual void unwatch(const LockName& lock) = 0;
};

// Remembers what was done once under a key of a lock. A store may offer it; the rules are those of
// its other operations.
class OnceRecords {
 public:
  virtual ~OnceRecords() = default;

  virtual void recall(LockName lock, std::string key, CallContext context,
                      Completion<std::optional<OnceRecord>> done) = 0;
  // Succeeds only while `request` holds the lock (else `lost`), and never overwrites.
  virtual void record(LockName lock, RequestId request, std::string key, OnceRecord what,
                      CallContext context, Completion<std::monostate> done) = 0;
  // The keys under which something is recorded for this lock, in the order of their bytes.
  virtual void list_keys(LockName lock, CallContext context,
                         Completion<std::vector<std::string>> done) = 0;
  // Whether there was one. What is forgotten would be done again.
  virtual void forget(LockName lock, std::string key, CallContext context,
                      Completion<bool> done) = 0;
};

// Rules for every operation:
// - Thread safe. Calls its completion exactly once, from any thread, by the deadline (or soon after
//   the stop token), also during close().
// - May work on the calling thread, and call the completion there, before it returns: the engine
//   never calls a store with a lock held, nor from the thread that declares a lease lost.
// - A failure says what is known: `unavailable` = it was not done and never will be;
//   `outcome_unknown` = it may have been done, or may still be; `cancelled` = the stop token came
//   first, and it was not done. Never guess.
// - Repeating a call with the same request id is safe.
class Store {
 public:
  virtual ~Store() = default;

  // Constant for the life of the store object. Thread safe.
  virtual const StoreTraits& traits() const = 0;

  // Called once, before any other operation. `events` outlives close().
  virtual void start(StoreEvents& events) = 0;

  // Stops all work; every pending completion has been called when it returns, and no event comes
  // any more. A call made later is answered `unavailable` at once.
  virtual void close() = 0;

  // Grants if the request fits beside all that are granted and all that are queued before it; a
  // request that holds the lock already gets the same grant again, and its expiry is NOT moved. The
  // token is durable before the reply, and larger than that of every earlier grant of this lock
  // which it could not stand beside (`correctness` only). `invalid` if the lock is in use in a mode
  // that does not mix with this one, or an operator has set another number of permits; a request
  // that has a place already is not judged again.
  virtual void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) = 0;

  // Moves the expiry of grants that are still alive; one reply per call, in order. Never grants.
  // Fails if nothing is known of any.
  virtual void renew(std::vector<RenewCall> calls, CallContext context,
                     Completion<std::vector<RenewReply>> done) = 0;

  // Ends this request's grant, or gives up its place in the queue. Nobody else's.
  virtual void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) = 0;

  // Optional from here on; the defaults answer `unsupported`.

  virtual void inspect(LockName lock, CallContext context, Completion<LockStatus> done);
  virtual void list(CallContext context, Completion<std::vector<LockStatus>> done);

  // Ends the grant of `seen` as its operator, if it is still the holder.
  virtual void force_release(LockName lock, RequestId seen, CallContext context,
                             Completion<ReleaseReply> done);

  // Gives the store a new id, and so all its locks new lineages: fences refuse every token of the
  // store from now on, until they are told to adopt it. For the operator, after a restore from a
  // backup.
  virtual void rotate_store_id(CallContext context, Completion<StoreId> done);

  // From now on the lock has so many permits, in use or not, until that is forgotten (nothing).
  // More are given out at once, fewer as permits come back. `invalid` while the lock is used
  // without permits.
  virtual void set_permits(LockName lock, std::optional<std::int64_t> permits, CallContext context,
                           Completion<std::monostate> done);

  // Null: it keeps none. As long as the store lives; before close().
  virtual OnceRecords* once_records() { return nullptr; }

  // Null: it tells no changes, and has to be asked. As once_records().
  virtual ChangeHints* change_hints() { return nullptr; }
};

}  // namespace leasehold
