// A client's connection to a server that speaks RESP. The calling thread does the I/O itself: no
// thread stands between a caller and its reply.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/resp/value.h"
#include "leasehold/store.h"
#include "leasehold/tls_options.h"
#include "leasehold/url.h"
#include "waiting/call_wait.h"

namespace leasehold::resp {

struct Endpoint {
  HostPort address;  // with a port
  TlsOptions tls;
  std::string user;  // empty: the server's default user
  std::string password;
  int database = 0;
};

// What the server said of itself when it was greeted; empty where it did not.
struct Greeting {
  int protocol = 2;
  std::string version;
  std::string mode;  // "standalone", "cluster", "sentinel"
};

// One connection, greeted and authenticated. For one thread at a time. Do not use it again
// after a failure. No message has the password in it.
class Connection {
 public:
  ~Connection();
  Connection(const Connection&) = delete;

  const Greeting& greeting() const;

  // Whether the other side has not closed it, as far as this side knows. Does not block.
  bool alive() const;

  // Sends all bytes: one or several commands. `unavailable` or `cancelled`: not a byte has left;
  // else `outcome_unknown`.
  [[nodiscard]] Status send(waiting::CallWait& wait, std::string_view commands);

  // The next value, which may be a push. Fails with `outcome_unknown`.
  [[nodiscard]] Result<Value> receive(waiting::CallWait& wait);

  // Both, for one command: the reply to it; pushes are skipped.
  [[nodiscard]] Result<Value> call(waiting::CallWait& wait, std::string_view command);
  [[nodiscard]] Result<Value> reply(waiting::CallWait& wait);

  // True if something can be received at once, or when it can; false when the call must end.
  bool until_readable(waiting::CallWait& wait);

  class Wire;
  explicit Connection(std::unique_ptr<Wire> wire);

 private:
  friend class Connector;
  std::unique_ptr<Wire> wire_;
};

// Makes connections to one endpoint. Thread safe.
class Connector {
 public:
  // `invalid`: a TLS file that cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<Connector>> make(Endpoint endpoint);
  ~Connector();

  // Resolves the name again, connects, greets. Fails with `unavailable`, the address and the
  // server's words, or `cancelled`. `closing` ends it.
  [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const CallContext& context,
                                                            const waiting::Alarm& closing);

  // "host:port"
  const std::string& address() const;

  // A server's words without the password, in case they repeat it.
  std::string without_secret(std::string words) const;

 private:
  struct State;
  explicit Connector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::resp
