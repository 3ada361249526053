// PostgreSQL, as the classes of leasehold/sql use it. Use them by their names in
// leasehold::postgres.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/postgres/outbox.h"
#include "leasehold/postgres/transaction.h"
#include "leasehold/sql/once.h"
#include "leasehold/token.h"

namespace leasehold::postgres {

struct Driver {
  using Handle = pg_conn;
  using Transaction = OwnedTransaction;
  using OnceBegun = sql::OnceBegun<Transaction>;

  // What sql::Fence does.
  static Status check_fence(pg_conn* connection);
  static Status enter(pg_conn* connection, const ResourceName& resource, const Token& token,
                      Entry entry);
  static Result<Transaction> begin_entered(pg_conn* connection, const ResourceName& resource,
                                           const Token& token, Entry entry);
  static Status enter_to_read(pg_conn* connection, const ResourceName& resource,
                              const Token& token);
  static Result<Transaction> begin_reading(pg_conn* connection, const ResourceName& resource,
                                           const Token& token);
  static Status count_refusal(pg_conn* connection, const ResourceName& resource);
  static Result<std::optional<FenceMark>> mark(pg_conn* connection, const ResourceName& resource);

  // What sql::Claim does.
  static Status claim(pg_conn* connection, const ResourceName& resource, const RequestId& request);
  static Status confirm(pg_conn* connection, const ResourceName& resource,
                        const RequestId& request);
  static Result<Transaction> begin_confirmed(pg_conn* connection, const ResourceName& resource,
                                             const RequestId& request);

  // What sql::Once and sql::FencedOnce do.
  static Status check_once(pg_conn* connection);
  static Result<OnceBegun> begin_once(pg_conn* connection, std::string_view key,
                                      std::string_view parameters, const OnceOptions& options);
  static Result<OnceBegun> begin_fenced_once(pg_conn* connection, const ResourceName& resource,
                                             const Token& token, std::string_view key,
                                             std::string_view parameters,
                                             const OnceOptions& options);
  static Status store_result(pg_conn* connection, std::string_view key, std::string_view parameters,
                             std::string_view result);
  static Result<std::int64_t> forget_results(pg_conn* connection, std::chrono::seconds age);
  static Result<std::int64_t> put(pg_conn* connection, const OutboxEntry& entry) {
    return outbox_put(connection, entry);
  }
};

}  // namespace leasehold::postgres
