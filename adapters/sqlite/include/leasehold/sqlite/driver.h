// SQLite, as the classes of leasehold/sql use it. Use them by their names in leasehold::sqlite.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/sql/once.h"
#include "leasehold/sqlite/outbox.h"
#include "leasehold/sqlite/transaction.h"
#include "leasehold/token.h"

namespace leasehold::sqlite {

struct Driver {
  using Handle = sqlite3;
  using Transaction = detail::OwnedTransaction;
  using OnceBegun = sql::OnceBegun<Transaction>;

  // What sql::Fence does.
  static Status check_fence(sqlite3* db);
  static Status enter(sqlite3* db, const ResourceName& resource, const Token& token, Entry entry);
  static Result<Transaction> begin_entered(sqlite3* db, const ResourceName& resource,
                                           const Token& token, Entry entry);
  static Status enter_to_read(sqlite3* db, const ResourceName& resource, const Token& token);
  static Result<Transaction> begin_reading(sqlite3* db, const ResourceName& resource,
                                           const Token& token);
  static Status leave(sqlite3* db);
  static Status count_refusal(sqlite3* db, const ResourceName& resource);
  static Result<std::optional<FenceMark>> mark(sqlite3* db, const ResourceName& resource);

  // What sql::Claim does.
  static Status claim(sqlite3* db, const ResourceName& resource, const RequestId& request);
  static Status confirm(sqlite3* db, const ResourceName& resource, const RequestId& request);
  static Result<Transaction> begin_confirmed(sqlite3* db, const ResourceName& resource,
                                             const RequestId& request);

  // What sql::Once and sql::FencedOnce do.
  static Status check_once(sqlite3* db);
  static Result<OnceBegun> begin_once(sqlite3* db, std::string_view key,
                                      std::string_view parameters, const OnceOptions& options);
  static Result<OnceBegun> begin_fenced_once(sqlite3* db, const ResourceName& resource,
                                             const Token& token, std::string_view key,
                                             std::string_view parameters,
                                             const OnceOptions& options);
  static Status store_result(sqlite3* db, std::string_view key, std::string_view parameters,
                             std::string_view result);
  static Result<std::int64_t> forget_results(sqlite3* db, std::chrono::seconds age);
  static Result<std::int64_t> put(sqlite3* db, const OutboxEntry& entry) {
    return outbox_put(db, entry);
  }
};

}  // namespace leasehold::sqlite
