#include "once_admin.h"

#include <utility>

#include "admin_connection.h"
#include "kit/try.h"
#include "leasehold/postgres/once.h"

namespace leasehold::postgres {
namespace {

class PostgresOnceAdmin final : public OnceAdmin {
 public:
  explicit PostgresOnceAdmin(AdminConnection connection) : connection_(std::move(connection)) {}

  Status install() override { return connection_.named(install_once(connection_.handle())); }

  Result<std::int64_t> forget_older_than(std::chrono::seconds age) override {
    return connection_.named(Once::open(connection_.handle()).and_then([&](const Once& once) {
      return once.forget_older_than(age);
    }));
  }

 private:
  AdminConnection connection_;
};

}  // namespace

Result<std::unique_ptr<OnceAdmin>> open_once_admin(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<PostgresOnceAdmin>(std::move(connection));
}

}  // namespace leasehold::postgres
