// The C client library, in C++: one session with the server, and its asynchronous operations.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/error.h"
#include "leasehold/time.h"
#include "options.h"

typedef struct _zhandle zhandle_t;

namespace leasehold::zookeeper {

// What a reply code means for a request.
enum class Outcome {
  done,
  no_node,
  node_exists,
  lost,     // the connection broke: it may have been done
  over,     // the session has ended, and with it all its ephemeral nodes
  too_old,  // the server does not know the request
  refused,  // it was not done
};
Outcome outcome_of(int rc);
// The code of Outcome::no_node.
extern const int kNoNode;
// One of Outcome::refused: a step of a transaction found another version.
extern const int kBadVersion;
// Of Outcome::lost: the connection broke, or is being closed.
extern const int kLost;
extern const int kClosing;
// One of Outcome::refused that no server gives: it was not even sent.
extern const int kNotSent;
// The server's words for a reply code.
std::string words_of(int rc);

struct NodeStat {
  std::int64_t created = 0;     // zxid
  std::int64_t children = 0;    // zxid of the last child that came or went
  std::int64_t created_ms = 0;  // by the server's wall clock
  std::int64_t modified_ms = 0;
  std::int64_t session = 0;  // that an ephemeral node belongs to
  std::int32_t version = 0;  // how often it was set
};

// With a user in the URL, nodes are for that user only; `common` ones are for everybody.
enum class NodeMode { common, persistent, container, ephemeral_sequential };

// One part of a transaction.
struct Step {
  enum class Kind {
    check,
    create,
    create_numbered,  // as NodeMode::ephemeral_sequential
    set,
    remove
  } kind;
  std::string path;
  std::string data = {};
  std::int32_t version = -1;  // that the node must have; not for create; -1: any
};
// What became of it.
struct Stepped {
  int rc = 0;
  std::string path = {};  // of a node that was made
};

// Thread safe; nothing blocks but open() (name resolution) and close(). Replies come on the
// library's completion thread, in the order in which the requests were sent; or inside the call, if
// it cannot be sent. So call it with no lock held that a reply takes. Requests may be sent one
// after the other without waiting: the server treats those of one session in order.
class Connection {
 public:
  enum class State { connecting, connected, expired, denied };
  struct Events {
    std::function<void(State)> changed;
    std::function<void(const std::string& path)> touched;  // a watched node; the watch is used up
  };
  using Replied = std::function<void(int rc)>;
  using Created = std::function<void(int rc, const std::string& path, const NodeStat& stat)>;
  using Listed = std::function<void(int rc, std::vector<std::string> names, const NodeStat& stat)>;
  using Read = std::function<void(int rc, std::string data, const NodeStat& stat)>;
  using Transacted = std::function<void(int rc, const std::vector<Stepped>& each)>;

  explicit Connection(Events events);
  ~Connection();  // close()
  Connection(const Connection&) = delete;

  // Begins to connect, and tells by events.changed how that goes; once, and not beside close().
  // `unavailable` if a host name cannot be resolved.
  [[nodiscard]] Status open(const Options& options, Millis session_timeout)
      LEASEHOLD_EXCLUDES(mutex_);

  void create(const std::string& path, const std::string& data, NodeMode mode, Created done);
  void children(const std::string& path, Listed done) { children(path, false, std::move(done)); }
  void children(const std::string& path, bool watch, Listed done);  // for who comes and goes
  void get(const std::string& path, bool watch, Read done);
  void exists(const std::string& path, bool watch, Read done);  // data stays empty
  void set(const std::string& path, const std::string& data, Replied done);
  void remove(const std::string& path, Replied done);
  // What is sent after it sees at least all that the leader had committed.
  void sync(const std::string& path, Replied done);
  // All or nothing. `each` has every step.
  void transact(std::vector<Step> steps, Transacted done);

  // Of the current session; as negotiated with the server.
  Millis session_timeout() const;
  std::int64_t session_id() const;

  // Cuts the connection for good without ending the session, so that its nodes stay until it
  // expires.
  void abandon() LEASEHOLD_EXCLUDES(mutex_);
  // Ends the session if it is connected. Every reply has come when it returns, some of them inside
  // the call: the library drops what is pending when its session ends at the same time. Not from a
  // reply or an event.
  void close() LEASEHOLD_EXCLUDES(mutex_);

 private:
  struct Callbacks;
  // A request whose reply is awaited. It is answered by who takes it out of `awaited_`.
  class Awaited;
  template <class Reply>
  class AwaitedReply;
  using AwaitedList = std::list<std::unique_ptr<Awaited>>;

  // Hands the request over to the library, or answers it at once.
  template <class Reply, class Send>
  void send(Reply reply, Send request) LEASEHOLD_EXCLUDES(mutex_);
  std::unique_ptr<Awaited> take(AwaitedList::iterator which) LEASEHOLD_EXCLUDES(mutex_);

  const Events events_;
  bool private_nodes_ = false;  // set by open()
  mutable Mutex mutex_;
  zhandle_t* handle_ LEASEHOLD_GUARDED_BY(mutex_) = nullptr;
  AwaitedList awaited_ LEASEHOLD_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace leasehold::zookeeper
