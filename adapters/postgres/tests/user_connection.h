// The connection of a program that uses the fence, made with libpq's own interface.
#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/token.h"

namespace leasehold::postgres {

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
  static std::string failure_of(const PGresult* result) {
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return "";
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char* words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    return std::string(state == nullptr ? "lost" : state) + " " + (words == nullptr ? "" : words);
  }

  std::unique_ptr<PGconn, Clear> connection_;
};

template <class T>
::testing::AssertionResult good(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

template <class T>
::testing::AssertionResult bad(const Result<T>& result, ErrorCode code) {
  if (result) return ::testing::AssertionFailure() << "it succeeded";
  if (result.error().code == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

inline RequestId request_of(char digit) {
  return RequestId::from_hex(std::string(32, digit)).value();
}

inline Lineage lineage_of(char digit) {
  return Lineage::parse(std::string(32, digit) + "/invoice/1234").value();
}

inline Token token_of(std::int64_t number, char request, char store = 'a') {
  return Token{TokenNumber::of(number).value(), lineage_of(store), request_of(request)};
}

}  // namespace leasehold::postgres
