#include "serial_work.h"

#include "admin_connection.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/postgres/serial_queue.h"

namespace leasehold::postgres {
namespace {

// The session waits a little longer than the work may take: whoever works notices first.
constexpr Millis kMargin{10'000};

class PostgresSerialWork final : public SerialWork {
 public:
  explicit PostgresSerialWork(AdminConnection connection) : connection_(std::move(connection)) {}

  Result<std::int64_t> push(const QueueName& name, const EntityName& entity,
                            std::string_view payload) override {
    const auto queue = TRY(open(name));
    return connection_.named(queue.push(entity.str(), payload));
  }

  Result<Handled> handle_one(const QueueName& name, const Work& work, Millis longest,
                             const HandleOptions& options) override {
    const auto queue = TRY(open(name));
    SerialHandleOptions how;
    static_cast<HandleOptions&>(how) = options;
    how.idle_timeout = longest + kMargin;
    return connection_.named(queue.handle_one(
        [&](OpenTransaction&, const Operation& operation) { return work(operation, {}); }, how));
  }

  Result<Overview> look_at(const QueueName& name) override {
    const auto queue = TRY(open(name));
    Overview found;
    found.waiting = TRY(connection_.named(queue.waiting()));
    const auto problems = TRY(connection_.named(queue.set_aside()));
    for (const SerialProblem& problem : problems) {
      found.set_aside.push_back({problem.operation.entity, problem.last_error});
    }
    return found;
  }

  Status retry(const QueueName& name, const EntityName& entity) override {
    return resolve(name, entity, &SerialQueue::retry);
  }
  Status skip(const QueueName& name, const EntityName& entity) override {
    return resolve(name, entity, &SerialQueue::skip);
  }

 private:
  Result<SerialQueue> open(const QueueName& name) const {
    return connection_.named(SerialQueue::open(connection_.handle(), name.str()));
  }

  Status resolve(const QueueName& name, const EntityName& entity,
                 Status (SerialQueue::*how)(std::int64_t) const) const {
    const auto queue = TRY(open(name));
    const auto problems = TRY(connection_.named(queue.set_aside()));
    for (const SerialProblem& problem : problems) {
      if (problem.operation.entity == entity) {
        return connection_.named((queue.*how)(problem.operation.id));
      }
    }
    return fail(ErrorCode::invalid, "entity " + kit::in_quotes(entity.str()) + " is not set aside");
  }

  AdminConnection connection_;
};

}  // namespace

Result<std::unique_ptr<SerialWork>> open_serial_work(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<PostgresSerialWork>(std::move(connection));
}

}  // namespace leasehold::postgres
