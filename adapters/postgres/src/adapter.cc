#include "leasehold/postgres/adapter.h"

#include "admin_connection.h"
#include "advisory_store.h"
#include "examination.h"
#include "fence_admin.h"
#include "kit/try.h"
#include "leasehold/postgres/serial_queue.h"
#include "leasehold/serial_queue_admin.h"
#include "once_admin.h"
#include "options.h"
#include "outbox.h"
#include "row_store.h"
#include "serial_work.h"

namespace leasehold::postgres {
namespace {

Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening) {
  auto options = TRY(Options::of(url));
  if (options.mode == LockKind::advisory) {
    return AdvisoryStore::open(std::move(options), system_random(), opening.begin());
  }
  return RowStore::open(std::move(options), system_random(), opening.begin());
}

class PostgresSerialQueueAdmin : public SerialQueueAdmin {
 public:
  explicit PostgresSerialQueueAdmin(AdminConnection connection)
      : connection_(std::move(connection)) {}
  Status install() override {
    return connection_.named(SerialQueue::install(connection_.handle()));
  }

 private:
  AdminConnection connection_;
};

Result<std::unique_ptr<SerialQueueAdmin>> open_serial_queue_admin(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<PostgresSerialQueueAdmin>(std::move(connection));
}

}  // namespace

std::vector<Adapter> adapters() {
  std::vector<Adapter> both;
  for (const char* scheme : {"postgres", "postgresql"}) {
    both.push_back({.scheme = scheme,
                    .open_store = open_store,
                    .offers = Offers()
                                  .with<FenceAdmin>(open_fence_admin)
                                  .with<Outbox>(open_outbox)
                                  .with<OnceAdmin>(open_once_admin)
                                  .with<SerialQueueAdmin>(open_serial_queue_admin)
                                  .with<SerialWork>(open_serial_work),
                    .examine = examine});
  }
  return both;
}

}  // namespace leasehold::postgres
