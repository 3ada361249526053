#include "leasehold/postgres/adapter.h"

#include "admin_connection.h"
#include "examination.h"
#include "fence_admin.h"
#include "kit/try.h"
#include "leasehold/postgres/serial_queue.h"
#include "once_admin.h"
#include "options.h"
#include "outbox.h"
#include "row_store.h"
#include "session_store.h"

namespace leasehold::postgres {
namespace {

Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening) {
  auto options = TRY(Options::of(url));
  if (options.mode == Mode::advisory) {
    return SessionStore::open(std::move(options), system_random(), opening.begin());
  }
  return RowStore::open(std::move(options), system_random(), opening.begin());
}

Status install_serial_queue(const Url& url) {
  const auto connection = TRY(AdminConnection::open(url));
  return connection.named(SerialQueue::install(connection.handle()));
}

}  // namespace

std::vector<Adapter> adapters() {
  std::vector<Adapter> both;
  for (const char* scheme : {"postgres", "postgresql"}) {
    both.push_back({.scheme = scheme,
                    .open_store = open_store,
                    .open_fence = open_fence_admin,
                    .open_outbox = open_outbox,
                    .open_once = open_once_admin,
                    .install_serial_queue = install_serial_queue,
                    .examine = examine});
  }
  return both;
}

}  // namespace leasehold::postgres
