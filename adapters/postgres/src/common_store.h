// What the stores of both kinds of locks have in common: the database, its connections, and the
// operations that are rarely asked.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "connection.h"
#include "leasehold/random.h"
#include "leasehold/store.h"
#include "options.h"
#include "server.h"
#include "waiting/call_wait.h"
#include "waiting/connection_pool.h"
#include "waiting/doubts.h"

namespace leasehold::postgres {

class CommonStore : public Store {
 public:
  const StoreTraits& traits() const override { return server_.traits; }
  void start(StoreEvents& events) override { events_ = &events; }
  void inspect(LockName lock, CallContext context, Completion<LockStatus> done) override;
  void list(CallContext context, Completion<std::vector<LockStatus>> done) override;
  void force_release(LockName lock, RequestId seen, CallContext context,
                     Completion<ReleaseReply> done) override;
  void rotate_lineage(CallContext context, Completion<StoreId> done) override;
  void recall(LockName lock, std::string key, CallContext context,
              Completion<std::optional<OnceRecord>> done) override;
  void record(LockName lock, RequestId request, std::string key, OnceRecord what,
              CallContext context, Completion<std::monostate> done) override;

 protected:
  using Pool = waiting::ConnectionPool<Connection>;

  // The functions of the schema that do it for this kind of locks.
  struct Functions {
    const char* status;
    const char* force_release;
    const char* record;
  };
  CommonStore(Options options, Random& random, Functions functions, std::size_t connections);

  // Looks at the server, and puts the schema in place. Fails with `unavailable` or `unsupported`,
  // with the address and the server's own words.
  [[nodiscard]] Status prepare(const CallContext& context);
  // Whether this kind of locks can live there.
  [[nodiscard]] virtual Status suits(const Server& server) const = 0;
  // What every connection has prepared, unless a pooler is in between.
  virtual std::vector<const Statement*> statements() const = 0;
  // Which of the two new lineages is that of this kind of locks.
  virtual const StoreId& own(const StoreId& rows, const StoreId& sessions) const = 0;

  Result<std::unique_ptr<Connection>> connect(const CallContext& context);
  using Look = waiting::Look;
  Result<Pool::Loan> healthy_connection(const CallContext& context, Look look = Look::always);
  // Runs the statement on a connection of the pool.
  Result<Rows> ask(const Statement& statement, Parameters parameters, const CallContext& context,
                   Look look = Look::always);
  Statement statement(const char* name, const std::string& sql) const;

  template <class Reply>
  void answer(const Completion<Reply>& done, Result<Reply> reply) const {
    if (!reply) reply.error().message = options_.address + ": " + reply.error().message;
    done(std::move(reply));
  }

  const Options options_;
  Random& random_;
  waiting::Alarm closing_;
  Server server_;
  StoreEvents* events_ = nullptr;
  waiting::Doubts doubts_;
  Pool pool_;

 private:
  [[nodiscard]] Status look_and_prepare(const CallContext& context);

  const Statement status_;
  const Statement force_release_;
  const Statement record_;
};

// A span in milliseconds, as a parameter.
inline std::string number(Millis span) {
  return std::to_string(span.count());
}

}  // namespace leasehold::postgres
