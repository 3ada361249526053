// One Redis server, as the stores use it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "leasehold/resp/connection.h"
#include "script.h"
#include "waiting/connection_pool.h"

namespace leasehold::redis {

// What a server's error reply means: `unavailable` if nothing was done (`unsupported` if the store
// is in another format), else `outcome_unknown`.
Error error_of(const std::string& words);
// Whether the script must be sent in full.
bool is_unknown_script(const resp::Value& reply);
inline constexpr const char* kUnknownScript = "NOSCRIPT";  // Error::store_code

// Whether a connection that answers so must not be used again.
bool is_over(const Result<resp::Value>& reply);

// Thread safe. Calls work on the calling thread, each on a connection of its own.
class Server {
 public:
  using Pool = waiting::ConnectionPool<resp::Connection>;

  // `invalid` for a TLS file that cannot be used. Does not connect.
  [[nodiscard]] static Result<std::unique_ptr<Server>> make(resp::Endpoint endpoint,
                                                            std::size_t connections);

  // One round trip, two if the server does not know the script. The reply is never an error.
  [[nodiscard]] Result<resp::Value> run(const ScriptCall& call, const CallContext& context);
  [[nodiscard]] Result<resp::Value> run(const std::string& command, const CallContext& context);
  // As run(), but the reply may be an error of the server.
  [[nodiscard]] Result<resp::Value> answer(const ScriptCall& call, const CallContext& context);

  // A connection that is alive, as far as this side knows.
  using Look = waiting::Look;
  [[nodiscard]] Result<Pool::Loan> borrow(const CallContext& context, Look look = Look::always);
  // The same, if there is one already; does not block.
  [[nodiscard]] std::optional<Pool::Loan> borrow_idle();
  // A connection beside the pool.
  [[nodiscard]] Result<std::unique_ptr<resp::Connection>> connect(const CallContext& context);

  // Whether calls wait for a connection.
  bool has_waiting() { return pool_.waiting() > 0; }

  // Turns an error reply into a failure, with the address.
  [[nodiscard]] Result<resp::Value> checked(Result<resp::Value> reply) const;
  // After a failure, or a refusal that another connection may not meet.
  void drop(Pool::Loan& loan);

  // Ends every call, without waiting for it.
  void hurry();
  // The same; returns when none runs.
  void close();
  const waiting::Alarm& closing() const { return closing_; }
  bool is_closing() const { return is_closing_; }
  const std::string& address() const { return connector_->address(); }

 private:
  Server(std::unique_ptr<resp::Connector> connector, std::size_t connections);

  template <class Ask>
  Result<resp::Value> on_a_connection(const CallContext& context, const Ask& ask);

  waiting::Alarm closing_;
  std::atomic<bool> is_closing_ = false;
  std::unique_ptr<resp::Connector> connector_;
  Pool pool_;
};

}  // namespace leasehold::redis
