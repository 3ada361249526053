// A worker of a serial queue: serial_worker URL QUEUE FOLDER TTL_MS ENTITY...
// Says "." when it begins an operation, writes "entity payload" to FOLDER/done when it has done
// one, and notices another worker at the same entity.
#include <string>
#include <vector>

#include "leasehold/redis/serial_queue.h"
#include "testing/handled_operations.h"

namespace {

using namespace leasehold;

Status write_down(int file, const Operation& operation) {
  const std::string line = operation.entity.str() + " " + operation.payload + "\n";
  if (write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return {};
  return fail(ErrorCode::unavailable, "cannot write");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  testing::SlowWorker worker(argv[3], std::vector<std::string>(argv + 5, argv + argc));
  const std::string path = std::string(argv[3]) + "/done";
  const kit::Fd done(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  auto queue = redis::SerialQueue::open(argv[1], argv[2], {.ttl = Millis(std::stol(argv[4]))});
  if (!queue) return 1;
  return testing::SlowWorker::work_on([&] {
    return queue->handle_one([&](const Operation& operation, const std::stop_token&) {
      return worker.work(operation, [&] { return write_down(done.get(), operation); });
    });
  });
}
