// PostgreSQL by hand: one connection of libpq, which ends the program when something fails.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/report.h"

namespace leasehold::bench {

class Libpq {
 public:
  using Values = std::vector<const char*>;

  explicit Libpq(const std::string& url) : connection_(PQconnectdb(url.c_str()), &PQfinish) {
    if (PQstatus(get()) != CONNECTION_OK) stop("libpq cannot connect");
  }
  PGconn* get() const { return connection_.get(); }

  void run(const std::string& sql) const { checked(PQexec(get(), sql.c_str())); }
  void run(const char* sql, const Values& values) const {
    checked(PQexecParams(get(), sql, static_cast<int>(values.size()), nullptr, values.data(),
                         nullptr, nullptr, 0));
  }
  void prepare(const char* name, const std::string& sql) const {
    checked(PQprepare(get(), name, sql.c_str(), 0, nullptr));
  }
  // How many rows came back.
  int execute(const char* name, const Values& values) const {
    return checked(PQexecPrepared(get(), name, static_cast<int>(values.size()), values.data(),
                                  nullptr, nullptr, 0));
  }

 private:
  static int checked(PGresult* answer) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> result(answer, &PQclear);
    const ExecStatusType status = PQresultStatus(answer);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      stop(std::string("PostgreSQL, by hand: ") + PQresultErrorMessage(answer));
    }
    return PQntuples(answer);
  }
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

}  // namespace leasehold::bench
