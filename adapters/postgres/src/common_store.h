// What the stores of both kinds of locks have in common: the database, its connections, and the
// operations that are rarely asked.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "connection.h"
#include "leasehold/random.h"
#include "options.h"
#include "server.h"
#include "store_base/blocking_store.h"
#include "waiting/call_wait.h"
#include "waiting/connection_pool.h"

namespace leasehold::postgres {

// Who is ahead, as far as it can be shown; nobody: nothing.
inline std::string label_or_nothing(std::string_view label) {
  return label.empty() ? "" : readable_label(label);
}

class CommonStore : public BlockingStore {
 public:
  const StoreTraits& traits() const override { return server_.traits; }
  OnceRecords* once_records() override { return own_once_records(); }

 protected:
  using Pool = waiting::ConnectionPool<Connection>;

  // The functions of the schema that do it for this kind of locks.
  struct Functions {
    const char* status;
    const char* force_release;
    const char* record;
  };
  CommonStore(Options options, Random& random, Functions functions, std::size_t connections,
              Calls calls = Calls::apart);

  // Looks at the server, and puts the schema in place. Fails with `unavailable` or `unsupported`,
  // with the address and the server's own words.
  [[nodiscard]] Status prepare(const CallContext& context);
  // Whether this kind of locks can live there.
  [[nodiscard]] virtual Status suits(const Server& server) const = 0;
  // What every connection has prepared, unless a pooler is in between.
  virtual std::vector<const Statement*> statements() const = 0;
  // Which of the two new ids is that of this kind of locks.
  virtual const StoreId& own(const StoreId& rows, const StoreId& advisory) const = 0;

  Result<std::unique_ptr<Connection>> connect(const CallContext& context);
  using Look = waiting::Look;
  Result<Pool::Loan> healthy_connection(const CallContext& context, Look look = Look::always);
  Result<Rows> run_on(Pool::Loan& connection, const Statement& statement, Parameters parameters,
                      const CallContext& context);
  // Runs the statement on a connection of the pool.
  Result<Rows> ask(const Statement& statement, Parameters parameters, const CallContext& context,
                   Look look = Look::always);
  Statement statement(const char* name, const std::string& sql) const;

  const Options options_;
  Random& random_;
  waiting::Alarm closing_;
  Server server_;
  Pool pool_;

 private:
  Result<LockStatus> do_inspect(const InspectCall& call, const CallContext& context) override;
  Result<std::vector<LockStatus>> do_list(const CallContext& context) override;
  Result<ReleaseReply> do_force_release(const ForceReleaseCall& call,
                                        const CallContext& context) override;
  Result<StoreId> do_rotate_store_id(const CallContext& context) override;
  Result<std::optional<OnceRecord>> do_recall(const RecallCall& call,
                                              const CallContext& context) override;
  Status do_record(const RecordCall& call, const CallContext& context) override;
  Result<std::vector<std::string>> do_list_keys(const ListKeysCall& call,
                                                const CallContext& context) override;
  Result<bool> do_forget(const ForgetCall& call, const CallContext& context) override;

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
