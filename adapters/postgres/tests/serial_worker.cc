// A worker of a serial queue: serial_worker URL QUEUE FOLDER ENTITY...
// Says "." when it begins an operation, and notices another worker at the same entity.
#include <libpq-fe.h>

#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include "leasehold/postgres/serial_queue.h"
#include "testing/entity_locks.h"

namespace {

using namespace leasehold;

Status write_down(PGconn* connection, const Operation& operation) {
  const std::string id = std::to_string(operation.id);
  const char* values[] = {operation.entity.str().c_str(), id.c_str(), operation.payload.c_str()};
  PGresult* result = PQexecParams(connection, "INSERT INTO done VALUES($1, $2, $3)", 3, nullptr,
                                  values, nullptr, nullptr, 0);
  const bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
  PQclear(result);
  return ok ? Status() : Status(fail(ErrorCode::unavailable, PQerrorMessage(connection)));
}

int work(PGconn* connection, const char* name, testing::EntityLocks& locks) {
  auto queue = postgres::SerialQueue::open(connection, name);
  if (!queue) {
    std::cerr << to_string(queue.error()) << "\n";
    return 1;
  }
  std::minstd_rand random{std::random_device{}()};
  const auto one = [&] {
    return queue->handle_one([&](postgres::OpenTransaction& open, const Operation& operation) {
      locks.enter(operation.entity.str());
      std::cout << "." << std::flush;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
      auto written = write_down(open.handle(), operation);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
      locks.leave(operation.entity.str());
      return written;
    });
  };
  const auto ended = work_loop(one, {.poll = Millis(2)});
  if (!ended) std::cerr << to_string(ended.error()) << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  testing::EntityLocks locks(argv[3], std::vector<std::string>(argv + 4, argv + argc));
  PGconn* connection = PQconnectdb(argv[1]);
  const int status = work(connection, argv[2], locks);
  PQfinish(connection);
  return status;
}
