// The outbox in a SQL database, but for what only the database knows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/outbox.h"
#include "leasehold/sql/statement.h"

namespace leasehold::sql {

// How a database writes what the statements of an outbox say; '%' stands for what they put in. Its
// table has the columns id, key, topic, payload, idempotency_key, put_at, attempts, last_error,
// set_aside, skipped and done_at.
struct OutboxForm {
  const char* table;
  char sign;                 // begins a parameter: '$' or '?'
  std::string now;           // as put_at and done_at have it
  std::string since;         // the milliseconds since %, as an integer
  std::string ago;           // the time % milliseconds ago
  const char* is_set_aside;  // whether the row % is, as the index of those says it
  const char* elements;      // a query for the elements of the list %, which is a text
  const char* list;          // what begins and ends a list: "[]"
};

class SqlOutbox : public Outbox {
 public:
  Status enter(const Token& token) final;
  Result<std::vector<OutboxMessage>> next(int limit, const std::vector<std::string>& except,
                                          std::int64_t after) final;
  Result<std::optional<OutboxMessage>> find(std::int64_t id) final;
  Status delivered(const Token& token, std::int64_t id) final;
  Result<bool> failed(const Token& token, std::int64_t id, const std::string& why,
                      int attempts) final;
  Result<std::int64_t> forget(const Token& token, Millis age) final;
  Result<OutboxStatus> status() final;
  Status retry(std::int64_t id) final;
  Status skip(std::int64_t id) final;

 protected:
  explicit SqlOutbox(OutboxForm form);

  // `unavailable` if the outbox is not installed or has another version.
  virtual Status check() = 0;
  virtual Result<Rows> run(const std::string& sql, const Parameters& parameters,
                           Purpose purpose) = 0;
  // Runs the work, which calls run(), in a transaction that has entered the outbox's fence.
  virtual Status fenced(const Token& token, const std::function<Status()>& work) = 0;
  // With the address of the database.
  virtual Error named(Error error) const = 0;

 private:
  std::string parameter(int number) const { return form_.sign + std::to_string(number); }
  std::string list_of(const std::vector<std::string>& texts) const;
  std::string key_goes_on() const;
  Result<Rows> ask(const std::string& sql, const Parameters& parameters = {});
  template <class Work>
  auto inside(const Token& token, Work work) -> decltype(work());
  Result<Rows> change(std::int64_t id, const std::string& changes, const std::string& condition,
                      Parameters more, const char* otherwise);
  Status resolve(std::int64_t id, const std::string& changes);

  const OutboxForm form_;
  const std::string table_;
  const std::string waiting_;  // a query for what may be delivered, as message_of() reads it
};

}  // namespace leasehold::sql
