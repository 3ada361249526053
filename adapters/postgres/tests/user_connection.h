// The connection of a program that uses the fence, made with libpq's own interface.
#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/token.h"
#include "testing/results.h"
#include "testing/tokens.h"

namespace leasehold::postgres {

// Empty, or the SQLSTATE and the server's own words.
inline std::string failure_of(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return "";
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return std::string(state == nullptr ? "lost" : state) + " " + (words == nullptr ? "" : words);
}

// The same of one statement.
inline std::string exec_on(PGconn* connection, const std::string& sql) {
  PGresult* result = PQexec(connection, sql.c_str());
  std::string failure = failure_of(result);
  PQclear(result);
  return failure;
}

class UserConnection {
 public:
  explicit UserConnection(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    EXPECT_EQ(PQstatus(get()), CONNECTION_OK) << PQerrorMessage(get());
    PQsetNoticeReceiver(
        get(), [](void*, const PGresult*) {}, nullptr);
  }

  PGconn* get() const { return connection_.get(); }

  // Empty, or the SQLSTATE and the server's own words.
  std::string exec(const std::string& sql, const std::vector<std::string>& values = {}) const {
    return failure_of(run(sql, values).get());
  }

  // The first column of the first row as text, "none", or the failure.
  std::string ask(const std::string& sql, const std::vector<std::string>& values = {}) const {
    const auto result = run(sql, values);
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) return failure_of(result.get());
    return PQntuples(result.get()) == 0 ? "none" : PQgetvalue(result.get(), 0, 0);
  }

 private:
  struct Clear {
    void operator()(PGconn* connection) const { PQfinish(connection); }
    void operator()(PGresult* result) const { PQclear(result); }
  };
  using Answer = std::unique_ptr<PGresult, Clear>;

  // Without values it may be several statements.
  Answer run(const std::string& sql, const std::vector<std::string>& values) const {
    if (values.empty()) return Answer(PQexec(get(), sql.c_str()));
    std::vector<const char*> pointers;
    for (const std::string& value : values) pointers.push_back(value.c_str());
    return Answer(PQexecParams(get(), sql.c_str(), static_cast<int>(pointers.size()), nullptr,
                               pointers.data(), nullptr, nullptr, 0));
  }

  std::unique_ptr<PGconn, Clear> connection_;
};

using leasehold::testing::bad;
using leasehold::testing::good;
using leasehold::testing::lineage_of;
using leasehold::testing::request_of;
using leasehold::testing::token_of;

}  // namespace leasehold::postgres
