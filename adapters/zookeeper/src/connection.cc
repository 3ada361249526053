#include "connection.h"

#define THREADED
#include <zookeeper/zookeeper.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace leasehold::zookeeper {
namespace {

// That the server puts behind a name.
constexpr std::size_t kLongestNumber = 11;

// What the library would print goes nowhere: errors are told by the calls themselves.
void keep_quiet(const char*) {}

NodeStat stat_of(const Stat* stat) {
  if (stat == nullptr) return {};
  return {.created = stat->czxid,
          .children = stat->pzxid,
          .created_ms = stat->ctime,
          .modified_ms = stat->mtime,
          .session = stat->ephemeralOwner,
          .version = stat->version};
}

int flags_of(NodeMode mode) {
  switch (mode) {
    case NodeMode::common:
    case NodeMode::persistent:
      return ZOO_PERSISTENT;
    case NodeMode::container:
      return ZOO_CONTAINER;
    case NodeMode::ephemeral_sequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
  }
  return ZOO_PERSISTENT;
}

// It knows no brackets around an IPv6 address; the port is what comes after the last colon.
std::string as_the_library_reads(std::string hosts) {
  std::erase_if(hosts, [](char c) { return c == '[' || c == ']'; });
  return hosts;
}

}  // namespace

const int kNoNode = ZNONODE;
const int kBadVersion = ZBADVERSION;
const int kLost = ZCONNECTIONLOSS;
const int kClosing = ZCLOSING;
const int kNotSent = ZNOTHING;

Outcome outcome_of(int rc) {
  switch (rc) {
    case ZOK:
      return Outcome::done;
    case ZNONODE:
      return Outcome::no_node;
    case ZNODEEXISTS:
      return Outcome::node_exists;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
      return Outcome::lost;
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZAUTHFAILED:
      return Outcome::over;
    case ZUNIMPLEMENTED:
      return Outcome::too_old;
    default:
      return Outcome::refused;
  }
}

std::string words_of(int rc) {
  return zerror(rc);
}

class Connection::Awaited {
 public:
  virtual ~Awaited() = default;
  virtual void fail(int rc) = 0;
};

struct Connection::Callbacks {
  static void on_event(zhandle_t*, int type, int state, const char*, void* context) {
    if (type != ZOO_SESSION_EVENT) return;
    const auto& changed = static_cast<Connection*>(context)->events_.changed;
    if (state == ZOO_CONNECTED_STATE) return changed(State::connected);
    if (state == ZOO_EXPIRED_SESSION_STATE) return changed(State::expired);
    if (state == ZOO_AUTH_FAILED_STATE) return changed(State::denied);
    changed(State::connecting);
  }
  // Every watch also hears of the session's state.
  static void on_node(zhandle_t*, int type, int, const char* path, void* context) {
    if (type == ZOO_SESSION_EVENT || path == nullptr) return;
    static_cast<Connection*>(context)->events_.touched(path);
  }

  template <class Reply>
  static Reply taken(const void* data) {
    return AwaitedReply<Reply>::taken(data);
  }
  static void replied(int rc, const void* data) { taken<Replied>(data)(rc); }
  static void string_replied(int rc, const char*, const void* data) { replied(rc, data); }
  static void set(int rc, const Stat*, const void* data) { replied(rc, data); }
  static void created(int rc, const char* path, const Stat* stat, const void* data) {
    taken<Created>(data)(rc, path == nullptr ? "" : path, stat_of(stat));
  }
  static void listed(int rc, const String_vector* found, const Stat* stat, const void* data) {
    std::vector<std::string> names;
    if (rc == ZOK && found != nullptr) names.assign(found->data, found->data + found->count);
    taken<Listed>(data)(rc, std::move(names), stat_of(stat));
  }
  static void read(int rc, const char* value, int length, const Stat* stat, const void* data) {
    std::string text;
    if (rc == ZOK && value != nullptr && length > 0) {
      text.assign(value, static_cast<std::size_t>(length));
    }
    taken<Read>(data)(rc, std::move(text), stat_of(stat));
  }
  static void seen(int rc, const Stat* stat, const void* data) {
    taken<Read>(data)(rc, {}, stat_of(stat));
  }

  struct Transaction {
    Transacted done;
    std::vector<zoo_op_result_t> results;
    std::vector<std::string> paths;  // the library writes the names of created nodes there

    void operator()(int rc) {
      std::vector<Stepped> each;
      each.reserve(results.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        each.push_back({results[i].err, paths[i].c_str()});
      }
      done(rc, each);
    }
  };
  static void transacted(int rc, const void* data) { taken<Transaction>(data)(rc); }

  static void fail(Replied& done, int rc) { done(rc); }
  static void fail(Created& done, int rc) { done(rc, "", {}); }
  static void fail(Listed& done, int rc) { done(rc, {}, {}); }
  static void fail(Read& done, int rc) { done(rc, {}, {}); }
  static void fail(Transaction& done, int rc) { done(rc); }
};

// What the library keeps for us, and gives back with the reply, is its address.
template <class Reply>
class Connection::AwaitedReply final : public Awaited {
 public:
  AwaitedReply(Connection& connection, Reply reply)
      : connection_(connection), reply_(std::move(reply)) {}

  static Reply taken(const void* data) {
    auto* self = static_cast<AwaitedReply*>(const_cast<void*>(data));
    const auto owned = self->connection_.take(self->where);
    return std::move(self->reply_);
  }
  void fail(int rc) override { Callbacks::fail(reply_, rc); }

  AwaitedList::iterator where;

 private:
  Connection& connection_;
  Reply reply_;
};

std::unique_ptr<Connection::Awaited> Connection::take(AwaitedList::iterator which) {
  MutexLock lock(mutex_);
  auto taken = std::move(*which);
  awaited_.erase(which);
  return taken;
}

Connection::Connection(Events events) : events_(std::move(events)) {}

Connection::~Connection() {
  close();
}

Status Connection::open(const Options& options, Millis session_timeout) {
  private_nodes_ = !options.credentials.empty();
  const std::string hosts = as_the_library_reads(options.hosts);
  MutexLock lock(mutex_);  // events that come before this returns wait for it when they send
  handle_ =
      zookeeper_init2(hosts.c_str(), Callbacks::on_event, static_cast<int>(session_timeout.count()),
                      nullptr, this, 0, keep_quiet);
  if (handle_ == nullptr) {
    return fail(ErrorCode::unavailable,
                "cannot begin to connect to " + options.hosts + "; is every host name right?",
                std::generic_category().message(errno));
  }
  if (!options.credentials.empty()) {
    zoo_add_auth(handle_, "digest", options.credentials.data(),
                 static_cast<int>(options.credentials.size()), nullptr, nullptr);
  }
  return {};
}

template <class Reply, class Send>
void Connection::send(Reply reply, Send request) {
  std::unique_ptr<Awaited> unsent;
  int rc = ZCLOSING;
  {
    MutexLock lock(mutex_);
    auto awaited = std::make_unique<AwaitedReply<Reply>>(*this, std::move(reply));
    if (handle_ == nullptr) {
      unsent = std::move(awaited);
    } else {
      auto& it = *awaited;
      it.where = awaited_.insert(awaited_.end(), std::move(awaited));
      rc = request(handle_, &it);
      if (rc == ZOK) return;
      unsent = std::move(*it.where);
      awaited_.erase(it.where);
    }
  }
  unsent->fail(rc);
}

void Connection::create(const std::string& path, const std::string& data, NodeMode mode,
                        Created done) {
  const bool is_private = private_nodes_ && mode != NodeMode::common;
  const ACL_vector* acl = is_private ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  send(std::move(done), [&](zhandle_t* zh, const void* context) {
    return zoo_acreate2(zh, path.c_str(), data.data(), static_cast<int>(data.size()), acl,
                        flags_of(mode), Callbacks::created, context);
  });
}

void Connection::children(const std::string& path, bool watch, Listed done) {
  send(std::move(done), [&](zhandle_t* zh, const void* context) {
    return zoo_awget_children2(zh, path.c_str(), watch ? Callbacks::on_node : nullptr, this,
                               Callbacks::listed, context);
  });
}

void Connection::get(const std::string& path, bool watch, Read done) {
  send(std::move(done), [&](zhandle_t* zh, const void* context) {
    return zoo_awget(zh, path.c_str(), watch ? Callbacks::on_node : nullptr, this, Callbacks::read,
                     context);
  });
}

void Connection::exists(const std::string& path, bool watch, Read done) {
  send(std::move(done), [&](zhandle_t* zh, const void* context) {
    return zoo_awexists(zh, path.c_str(), watch ? Callbacks::on_node : nullptr, this,
                        Callbacks::seen, context);
  });
}

void Connection::set(const std::string& path, const std::string& data, Replied done) {
  send(std::move(done), [&](zhandle_t* zh, const void* context) {
    return zoo_aset(zh, path.c_str(), data.data(), static_cast<int>(data.size()), -1,
                    Callbacks::set, context);
  });
}

void Connection::remove(const std::string& path, Replied done) {
  send(std::move(done), [&](zhandle_t* zh, const void* context) {
    return zoo_adelete(zh, path.c_str(), -1, Callbacks::replied, context);
  });
}

void Connection::sync(const std::string& path, Replied done) {
  send(std::move(done), [&](zhandle_t* zh, const void* context) {
    return zoo_async(zh, path.c_str(), Callbacks::string_replied, context);
  });
}

void Connection::transact(std::vector<Step> steps, Transacted done) {
  Callbacks::Transaction transaction;
  transaction.done = std::move(done);
  transaction.results.resize(steps.size());
  transaction.paths.resize(steps.size());
  const ACL_vector* acl = private_nodes_ ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  std::vector<zoo_op_t> ops(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& it = steps[i];
    const int length = static_cast<int>(it.data.size());
    switch (it.kind) {
      case Step::Kind::check:
        zoo_check_op_init(&ops[i], it.path.c_str(), it.version);
        break;
      case Step::Kind::remove:
        zoo_delete_op_init(&ops[i], it.path.c_str(), it.version);
        break;
      case Step::Kind::set:
        zoo_set_op_init(&ops[i], it.path.c_str(), it.data.data(), length, it.version, nullptr);
        break;
      case Step::Kind::create:
      case Step::Kind::create_numbered: {
        const bool numbered = it.kind == Step::Kind::create_numbered;
        transaction.paths[i].resize(it.path.size() + kLongestNumber + 1);
        zoo_create_op_init(&ops[i], it.path.c_str(), it.data.data(), length, acl,
                           numbered ? ZOO_EPHEMERAL_SEQUENTIAL : ZOO_PERSISTENT,
                           transaction.paths[i].data(),
                           static_cast<int>(transaction.paths[i].size()));
        break;
      }
    }
  }
  zoo_op_result_t* results = transaction.results.data();
  send(std::move(transaction), [&](zhandle_t* zh, const void* context) {
    // If the session ends while the library packs several steps, it frees paths that are not its
    // own. It cannot end before the connection did.
    if (is_unrecoverable(zh) != ZOK) return static_cast<int>(ZINVALIDSTATE);
    if (ops.size() > 1 && zoo_state(zh) != ZOO_CONNECTED_STATE) return kLost;
    return zoo_amulti(zh, static_cast<int>(ops.size()), ops.data(), results, Callbacks::transacted,
                      context);
  });
}

Millis Connection::session_timeout() const {
  MutexLock lock(mutex_);
  return Millis(handle_ == nullptr ? 0 : zoo_recv_timeout(handle_));
}

std::int64_t Connection::session_id() const {
  MutexLock lock(mutex_);
  return handle_ == nullptr ? 0 : zoo_client_id(handle_)->client_id;
}

void Connection::abandon() {
  MutexLock lock(mutex_);
  // A server that is none: the library lets go of the one it has, and close() finds no connection
  // on which to end the session.
  if (handle_ != nullptr) zoo_set_servers(handle_, "127.255.255.254:1");
}

void Connection::close() {
  zhandle_t* closing = nullptr;
  {
    MutexLock lock(mutex_);
    closing = std::exchange(handle_, nullptr);
  }
  if (closing == nullptr) return;
  zookeeper_close(closing);
  AwaitedList dropped;
  {
    MutexLock lock(mutex_);
    dropped.swap(awaited_);
  }
  for (const auto& it : dropped) it->fail(ZCLOSING);
}

}  // namespace leasehold::zookeeper
