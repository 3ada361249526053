// What an operator sees, and the lineage.
#include <algorithm>
#include <chrono>

#include "kit/text/visible_text.h"
#include "store.h"

namespace leasehold::zookeeper {
namespace {

constexpr std::string_view kOnceFolder = ".once";

Error not_read(int rc) {
  return Error(ErrorCode::unavailable, "the queue could not be read", words_of(rc));
}

Millis since(std::int64_t wall_ms) {
  const auto now =
      std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch());
  return std::max(now - Millis(wall_ms), Millis(0));
}

}  // namespace

void ZookeeperStore::list_queue(const SessionPtr& session, const std::string& folder, bool watch,
                                Connection::Listed done) {
  session->server().children(
      folder, watch,
      [session, folder, done = std::move(done)](int rc, std::vector<std::string> names,
                                                const NodeStat& at) {
        const bool leases = std::find(names.begin(), names.end(), kLeasesFolder) != names.end();
        if (!leases) return done(rc, std::move(names), at);
        const std::string inner(kLeasesFolder);
        session->server().children(
            folder + "/" + inner, [inner, done, at, names = std::move(names)](
                                      int seen, const auto& inside, const NodeStat&) mutable {
              for (const std::string& it : inside) {
                names.push_back(inner + "/" + it);
              }
              done(outcome_of(seen) == Outcome::no_node ? 0 : seen, std::move(names), at);
            });
      });
}

// One lock's queue, while the nodes in it are being read.
struct ZookeeperStore::Overview {
  struct Seen {
    Child child;
    bool there = false;
    std::string data = {};
    NodeStat stat = {};
  };
  LockStatus status;
  Slots slots;
  std::vector<Seen> seen;
  std::size_t open = 1;  // counted on the completion thread only
  std::optional<Error> error;
  std::function<void(Result<LockStatus>)> done;

  void one_done() {
    if (--open != 0) return;
    if (error) return done(fail(*error));
    std::erase_if(seen, [](const Seen& it) { return !it.there; });
    std::vector<std::string> names;
    for (const Seen& it : seen) names.push_back(it.child.name);
    const Queue queue(names);
    for (std::size_t place = 0; place < seen.size(); ++place) {
      if (queue.holds(place, slots)) {
        add_holder(seen[place], queue.slot_of(place, slots));
      } else {
        add_waiter(seen[place]);
      }
    }
    done(std::move(status));
  }
  void add_waiter(const Seen& it) {
    // Those who wait have their tokens already.
    if (status.waiters.empty() && status.counted_to) status.counted_to = it.stat.created - 1;
    status.waiters.push_back(
        {it.child.request, who(it.child.name, it.data), it.child.mode, note_of(it)});
  }
  void add_holder(const Seen& it, Slot slot) {
    const auto token = TokenNumber::of(std::max<std::int64_t>(it.stat.created, 1));
    const auto label = Label::parse(it.data);
    status.last_token = *token;
    status.holders.push_back(
        {.request = label ? it.child.request : stay_of(it.child.name),
         .token = *token,
         .owner = who(it.child.name, it.data),
         .held_for = since(it.stat.created_ms),
         .remaining = most_left(Millis(label ? label->session_ms : 0)),
         .kept = false,
         .foreign = !label,
         .at_most = true,
         .mode = it.child.mode,
         .slot = it.child.mode.is_permit() ? std::optional(slot) : std::nullopt,
         .note = note_of(it)});
  }
  static std::string note_of(const Seen& it) {
    const auto label = Label::parse(it.data);
    return label ? label->note : std::string();
  }
};

void ZookeeperStore::overview(const SessionPtr& session, const LockName& lock,
                              std::function<void(Result<LockStatus>)> done) {
  const std::string folder = folder_of(lock);
  auto it = std::make_shared<Overview>(Overview{.status = {.lock = lock,
                                                           .store = session->lineage(),
                                                           .last_token = {},
                                                           .holders = {},
                                                           .waiters = {},
                                                           .known_as = folder},
                                                .slots = {},
                                                .seen = {},
                                                .open = 2,
                                                .error = {},
                                                .done = std::move(done)});
  list_queue(
      session, folder, false, [it, session, folder](int rc, const auto& names, const NodeStat&) {
        const Outcome outcome = outcome_of(rc);
        if (outcome != Outcome::done && outcome != Outcome::no_node) it->error = not_read(rc);
        it->status.set_permits = Queue(names).set_permits();
        for (Child& child : in_order(names)) it->seen.push_back({std::move(child)});
        it->open += it->seen.size();
        for (Overview::Seen& seen : it->seen) {
          const std::string path = folder + "/" + seen.child.name;
          session->server().get(
              path, false,
              [it, session, path, &seen](int read, const std::string& data, const NodeStat& stat) {
                const auto found = [it, &seen](int code, const NodeStat& at) {
                  seen.there = outcome_of(code) == Outcome::done;
                  seen.stat = at;
                  if (!seen.there && outcome_of(code) != Outcome::no_node)
                    it->error = not_read(code);
                  it->one_done();
                };
                if (outcome_of(read) != Outcome::refused) {
                  seen.data = data;
                  return found(read, stat);
                }
                session->server().exists(
                    path, false,
                    [found](int code, const std::string&, const NodeStat& at) { found(code, at); });
              });
        }
        it->one_done();
      });
  // After the children: it may be later than they are, and is never earlier.
  const auto counted = [it](int rc, const NodeStat& stat) {
    if (outcome_of(rc) == Outcome::done) it->status.counted_to = stat.children;
    it->one_done();
  };
  session->server().get(
      folder, false,
      [it, session, folder, counted](int rc, const std::string& data, const NodeStat& stat) {
        if (outcome_of(rc) != Outcome::refused) {
          it->slots = Slots::parse(data).value_or(Slots());
          return counted(rc, stat);
        }
        session->server().exists(
            folder, false,
            [counted](int code, const std::string&, const NodeStat& at) { counted(code, at); });
      });
}

void ZookeeperStore::inspect(LockName lock, CallContext context, Completion<LockStatus> done) {
  auto call = begin<LockStatus>(context, std::move(done));
  if (call->over()) return;
  with_session(call, [this, call, lock = std::move(lock)](const SessionPtr& session) {
    session->server().sync(folder_of(lock), [](int) {});
    overview(session, lock, [call](Result<LockStatus> status) {
      if (status) return call->answer(std::move(*status));
      call->refuse(std::move(status.error()));
    });
  });
}

void ZookeeperStore::list(CallContext context, Completion<std::vector<LockStatus>> done) {
  struct Gathered {
    std::vector<LockStatus> locks;
    std::optional<Error> error;
    std::size_t open = 1;
  };
  auto call = begin<std::vector<LockStatus>>(context, std::move(done));
  if (call->over()) return;
  with_session(call, [this, call](const SessionPtr& session) {
    session->server().sync(options_.base, [](int) {});
    session->server().children(
        options_.base, [this, call, session](int rc, const auto& names, const NodeStat&) {
          const Outcome outcome = outcome_of(rc);
          if (outcome != Outcome::done && outcome != Outcome::no_node) {
            return call->refuse(not_read(rc));
          }
          auto all = std::make_shared<Gathered>();
          const auto one_done = [call, all] {
            if (--all->open != 0) return;
            if (all->error) return call->refuse(*all->error);
            std::sort(all->locks.begin(), all->locks.end(),
                      [](const LockStatus& a, const LockStatus& b) { return a.lock < b.lock; });
            call->answer(std::move(all->locks));
          };
          for (const std::string& name : names) {
            const auto text = decode(name);
            auto lock = LockName::parse(text ? *text : "");
            if (!lock) continue;  // not one of ours
            ++all->open;
            overview(session, *lock, [all, one_done](Result<LockStatus> status) {
              if (status) {
                all->locks.push_back(std::move(*status));
              } else {
                all->error = std::move(status.error());
              }
              one_done();
            });
          }
          one_done();
        });
  });
}

void ZookeeperStore::rotate_store_id(CallContext context, Completion<StoreId> done) {
  auto call = begin<StoreId>(context, std::move(done));
  if (call->over()) return;
  with_session(call, [call](const SessionPtr& session) {
    const StoreId next = StoreId::random(system_random());
    call->sent();
    session->server().set(session->lineage_path(), lineage_text(next), [call, next](int rc) {
      switch (outcome_of(rc)) {
        case Outcome::done:
          return call->answer(next);
        case Outcome::lost:
          return call->refuse(Error(ErrorCode::outcome_unknown,
                                    "the connection broke while the lineage was changed",
                                    words_of(rc)));
        default:
          return call->refuse(
              Error(ErrorCode::unavailable, "the server did not change the lineage", words_of(rc)));
      }
    });
  });
}

// ---- what was done once ---------------------------------------------------------------------

namespace {

// The length of the parameters in decimal, a space, both texts.
std::string packed(const OnceRecord& record) {
  return std::to_string(record.parameters.size()) + " " + record.parameters + record.result;
}

std::optional<OnceRecord> unpacked(const std::string& data) {
  const std::size_t space = data.find(' ');
  if (space == std::string::npos || space == 0 || space > 9) return std::nullopt;
  std::size_t length = 0;
  for (const char c : data.substr(0, space)) {
    if (c < '0' || c > '9') return std::nullopt;
    length = length * 10 + static_cast<std::size_t>(c - '0');
  }
  if (space + 1 + length > data.size()) return std::nullopt;
  return OnceRecord{data.substr(space + 1, length), data.substr(space + 1 + length)};
}

constexpr std::size_t kMostRecord = 900'000;  // the server takes less than a megabyte
constexpr std::size_t kMostKey = 4096;
constexpr std::string_view kKeyNode = "/key-";

Error key_too_long(const std::string& key) {
  return Error(ErrorCode::invalid, "the key of a record is at most " + std::to_string(kMostKey) +
                                       " bytes long, not " + std::to_string(key.size()));
}

}  // namespace

std::string ZookeeperStore::once_folder_of(const LockName& lock) const {
  return options_.base + "/" + std::string(kOnceFolder) + "/" + encode(lock.str());
}

void ZookeeperStore::recall(LockName lock, std::string key, CallContext context,
                            Completion<std::optional<OnceRecord>> done) {
  auto call = begin<std::optional<OnceRecord>>(context, std::move(done));
  if (call->over()) return;
  if (key.size() > kMostKey) return call->refuse(key_too_long(key));
  const std::string path = once_folder_of(lock) + std::string(kKeyNode) + encode(key);
  with_session(call, [call, path](const SessionPtr& session) {
    session->server().sync(path, [](int) {});
    session->server().get(path, false, [call](int rc, const std::string& data, const NodeStat&) {
      const Outcome outcome = outcome_of(rc);
      if (outcome == Outcome::no_node) return call->answer(std::nullopt);
      if (outcome != Outcome::done) {
        return call->refuse(
            Error(ErrorCode::unavailable, "the record could not be read", words_of(rc)));
      }
      auto record = unpacked(data);
      if (record) return call->answer(std::move(record));
      call->refuse(Error(ErrorCode::unavailable, "the record is not as Leasehold writes it"));
    });
  });
}

void ZookeeperStore::record(LockName lock, RequestId request, std::string key, OnceRecord what,
                            CallContext context, Completion<std::monostate> done) {
  auto call = begin<std::monostate>(context, std::move(done));
  if (call->over()) return;
  if (key.size() > kMostKey) return call->refuse(key_too_long(key));
  if (what.parameters.size() + what.result.size() > kMostRecord) {
    return call->refuse(Error(ErrorCode::invalid, "parameters and result of a record are at most " +
                                                      std::to_string(kMostRecord) +
                                                      " bytes together in ZooKeeper"));
  }
  const PlacePtr place = find(request);
  SessionPtr session;
  if (place) {
    MutexLock guard(mutex_);
    const bool holds = place->granted && !place->leaving && place->lock == lock &&
                       BootClock::now() < place->expires;
    if (holds) session = place->session;
  }
  if (!session) {
    return call->refuse(
        Error(ErrorCode::lost, "lock " + kit::in_quotes(lock.str()) + " is not held any more"));
  }
  const std::string path = once_folder_of(lock) + std::string(kKeyNode) + encode(key);
  session->when_ready(
      [this, call, place, session, path, data = packed(what)](const Status& status) {
        if (call->over()) return;
        if (!status) return call->refuse(Error(ErrorCode::lost, "the session has ended"));
        write_record(call, place, session, path, data, false);
      });
}

// The record is written only if the holder's node is there, in one transaction.
void ZookeeperStore::write_record(const std::shared_ptr<Call<std::monostate>>& call,
                                  const PlacePtr& place, const SessionPtr& session,
                                  const std::string& path, const std::string& data,
                                  bool made_folder) {
  std::string node;
  {
    MutexLock lock(mutex_);
    if (place->session == session) node = place->path;
  }
  if (node.empty()) return call->refuse(Error(ErrorCode::lost, "the lock is not held any more"));
  call->sent();
  session->server().transact(
      {{Step::Kind::check, node}, {Step::Kind::create, path, data}},
      [=, this](int rc, const std::vector<Stepped>& each) {
        const Outcome outcome = outcome_of(rc);
        if (outcome == Outcome::done || outcome == Outcome::node_exists) {
          return call->answer(std::monostate());
        }
        const bool gone = outcome == Outcome::over ||
                          (outcome == Outcome::no_node && outcome_of(each[0].rc) == outcome);
        if (gone) return call->refuse(Error(ErrorCode::lost, "the lock is not held any more"));
        if (outcome == Outcome::no_node && !made_folder) {
          const std::string folder = path.substr(0, path.rfind('/'));
          session->server().create(folder.substr(0, folder.rfind('/')), "", NodeMode::persistent,
                                   [](int, const std::string&, const NodeStat&) {});
          return session->server().create(folder, "", NodeMode::persistent,
                                          [=, this](int, const std::string&, const NodeStat&) {
                                            write_record(call, place, session, path, data, true);
                                          });
        }
        call->refuse(
            Error(outcome == Outcome::lost ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
                  "the record was not confirmed", words_of(rc)));
      });
}

void ZookeeperStore::list_keys(LockName lock, CallContext context,
                               Completion<std::vector<std::string>> done) {
  auto call = begin<std::vector<std::string>>(context, std::move(done));
  if (call->over()) return;
  const std::string folder = once_folder_of(lock);
  with_session(call, [call, folder](const SessionPtr& session) {
    session->server().sync(folder, [](int) {});
    session->server().children(folder, [call](int rc, const auto& names, const NodeStat&) {
      const Outcome outcome = outcome_of(rc);
      if (outcome != Outcome::done && outcome != Outcome::no_node) {
        return call->refuse(
            Error(ErrorCode::unavailable, "the records could not be listed", words_of(rc)));
      }
      std::vector<std::string> keys;
      for (const std::string_view name : names) {
        constexpr std::string_view ours = kKeyNode.substr(1);
        const auto key = name.starts_with(ours) ? decode(name.substr(ours.size())) : std::nullopt;
        if (key) keys.push_back(*key);
      }
      std::sort(keys.begin(), keys.end());
      call->answer(std::move(keys));
    });
  });
}

void ZookeeperStore::forget(LockName lock, std::string key, CallContext context,
                            Completion<bool> done) {
  auto call = begin<bool>(context, std::move(done));
  if (call->over()) return;
  const std::string path = once_folder_of(lock) + std::string(kKeyNode) + encode(key);
  with_session(call, [call, path](const SessionPtr& session) {
    call->sent();
    session->server().remove(path, [call](int rc) {
      const Outcome outcome = outcome_of(rc);
      if (outcome == Outcome::done) return call->answer(true);
      if (outcome == Outcome::no_node) return call->answer(false);
      call->refuse(
          Error(outcome == Outcome::lost ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
                "that the record was forgotten was not confirmed", words_of(rc)));
    });
  });
}

}  // namespace leasehold::zookeeper
