// Calls to the servers of one etcd cluster: which server, which connection, who we are, and when to
// try again. Nothing here blocks, except close().
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include <tl/expected.hpp>

#include "failure.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/time.h"
#include "options.h"

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace leasehold::etcd {

template <class Response>
using Done = std::function<void(tl::expected<Response, Failure>)>;

struct Limits {
  BootTime deadline;
  std::stop_token stop = {};
  bool repeat = false;   // it may be done twice: after an ambiguous failure it is tried again
  bool patient = false;  // each server gets its share of all the time to be reached
};

// So long before its deadline a call is answered: at the deadline itself the caller stops
// listening, and would not hear what is known.
inline BootClock::duration early_by(BootClock::duration left) {
  return std::min<BootClock::duration>(std::max(left, BootClock::duration(0)) / 10, Millis(100));
}

class Transport;

// One way to one server. When it is silent, it is left for a new one. gRPC's threads must not be
// the last to let go of a channel, because the end of the last channel waits for their end: whoever
// has one of these returns it before its call is over.
struct Connection {
  std::size_t endpoint;
  std::shared_ptr<grpc::Channel> channel;
};
using ConnectionPointer = std::shared_ptr<const Connection>;

class PendingCall {
 public:
  virtual ~PendingCall() = default;
  virtual void cancel() = 0;
};

// Thread safe. Completions come on gRPC's threads, or at once on the caller's when it is closed.
class Transport {
 public:
  // Reads the TLS files; fails with `invalid`. Connects when it is first used.
  // A connection that is not made within `connect_timeout`, 2 to 10 s, is given up.
  [[nodiscard]] static Result<std::unique_ptr<Transport>> make(const Options& options,
                                                               Millis connect_timeout = {});
  ~Transport() { close(); }

  // A call that was certainly not sent goes to the next server by itself. unary_call.cc lists the
  // calls that there are.
  template <class Request, class Response>
  void call(const char* method, Request request, Limits limits, Done<Response> done);

  // Ends all calls; each has been answered when it returns. Later ones are answered at once.
  void close();

  // How the next call goes: by which connection, and with which token (none: empty).
  struct Way {
    ConnectionPointer connection;
    std::string token;
    std::uint64_t token_number;
  };
  Way way() const;
  ConnectionPointer current() const { return way().connection; }
  std::size_t endpoints() const { return endpoints_.size(); }

  // Logs in, if there is a user and nobody has done so since token number `refused`.
  void authenticate(std::uint64_t refused, std::function<void(std::optional<Failure>)> done);
  void authenticate(std::uint64_t refused, const Limits& limits,
                    std::function<void(std::optional<Failure>)> done);

  // What a call has found out about its connection.
  void failed(const ConnectionPointer& connection, const Failure& failure);

  // Closes the connections that were left. To be called now and then, not on a thread of gRPC.
  void tidy();

 private:
  template <class Request, class Response>
  friend class UnaryCall;

  Transport(const Options& options, std::shared_ptr<grpc::ChannelCredentials> credentials,
            Millis connect_timeout);
  ConnectionPointer connect(std::size_t endpoint) const;
  void log_in(const Limits& limits);
  bool enter(PendingCall& call);
  void leave(PendingCall& call);

  const Millis connect_timeout_;
  const std::vector<std::string> endpoints_;
  const std::string user_;
  const std::string password_;
  const std::string server_name_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;

  mutable Mutex mutex_;
  ConditionVariable left_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::unordered_set<PendingCall*> pending_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<ConnectionPointer> connections_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<ConnectionPointer> left_behind_ LEASEHOLD_GUARDED_BY(mutex_);
  std::size_t preferred_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::string token_ LEASEHOLD_GUARDED_BY(mutex_);
  std::uint64_t token_number_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void(std::optional<Failure>)>> want_token_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::etcd
