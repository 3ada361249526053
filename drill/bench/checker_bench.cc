// checker_bench [EVENTS]: how long the checker takes, and how much memory, for a history of many
// clients that take turns; 10,000,000 events unless told otherwise.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "leasehold/drill/checker.h"
#include "leasehold/drill/history_file.h"
#include "leasehold/random.h"

namespace leasehold::drill {
namespace {

constexpr int kClients = 50;
constexpr int kLocks = 200;

// Each turn is one lease: asked for, granted, renewed, two writes, given back.
class Generator {
 public:
  explicit Generator(History& history) : history_(history) {
    store_ = history.process("store");
    resource_ = history.process("resource");
    lineage_ = history.store(StoreId::random(system_random()));
    for (int i = 0; i < kClients; ++i) {
      clients_.push_back(history.process("client " + std::to_string(i)));
    }
    for (int i = 0; i < kLocks; ++i) locks_.push_back({history.lock("lock/" + std::to_string(i))});
  }

  void turn(std::size_t number) {
    Lock& lock = locks_[number % kLocks];
    client_ = clients_[number % kClients];
    lock_ = lock.ref;
    request_ = history_.request(RequestId::random(system_random()));
    token_ = ++lock.token;
    add(client_, Kind::invoke, Operation::acquire);
    add(store_, Kind::grant, Operation::acquire, 1'000'000);
    add(client_, Kind::ok, Operation::acquire, 900'000);
    access(Operation::read, 0, lock.value, 0);
    for (std::uint32_t sequence = 1; sequence <= 2; ++sequence) {
      access(Operation::write, sequence, ++value_, lock.value);
      lock.value = value_;
    }
    add(store_, Kind::renew, Operation::renew, 1'000'000);
    add(client_, Kind::ok, Operation::renew, 900'000);
    add(client_, Kind::invoke, Operation::release);
    add(store_, Kind::release, Operation::release);
    add(client_, Kind::ok, Operation::release);
  }

 private:
  struct Lock {
    LockRef ref = 0;
    std::int64_t token = 0;
    std::uint64_t value = 0;
  };

  void add(ProcessRef process, Kind kind, Operation operation, std::int64_t lasts = 0,
           std::uint64_t value = 0, std::uint64_t base = 0, std::uint32_t sequence = 0) {
    Record record;
    record.time = ++now_;
    record.process = process;
    record.kind = kind;
    record.operation = operation;
    record.lock = lock_;
    record.request = request_;
    record.token = token_;
    record.store = lineage_;
    record.deadline = lasts == 0 ? 0 : now_ + lasts;
    record.value = value;
    record.base = base;
    record.sequence = sequence;
    if (!history_.append(record)) std::abort();
  }

  void access(Operation operation, std::uint32_t sequence, std::uint64_t value,
              std::uint64_t base) {
    add(client_, Kind::invoke, operation, 0, value, base, sequence);
    add(resource_, Kind::accept, operation, 0, value, base, sequence);
    add(client_, Kind::ok, operation, 0, value, base, sequence);
  }

  History& history_;
  ProcessRef store_ = 0;
  ProcessRef resource_ = 0;
  StoreRef lineage_ = 0;
  std::vector<ProcessRef> clients_;
  std::vector<Lock> locks_;
  ProcessRef client_ = 0;
  LockRef lock_ = 0;
  RequestRef request_ = 0;
  std::int64_t token_ = 0;
  std::int64_t now_ = 0;
  std::uint64_t value_ = 0;
};

template <class Work>
void measure(const char* what, Work&& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%-10s %7.2f s, at most %ld MiB so far\n", what, took.count(),
              usage.ru_maxrss / 1024);
  std::fflush(stdout);
}

int run(std::size_t events) {
  const std::string path =
      (std::filesystem::temp_directory_path() / "leasehold-checker-bench").string();
  bool good = true;
  {
    History history;
    measure("generate", [&] {
      Generator generator(history);
      for (std::size_t i = 0; history.records().size() < events; ++i) generator.turn(i);
    });
    measure("check", [&] {
      const Report report = check(history);
      good = report.clean();
      std::printf("%s", to_text(report, history).c_str());
    });
    measure("save", [&] { good = good && save_history(history, path, "bench"); });
  }
  measure("read", [&] {
    HistoryReader reader;
    good = good && reader.read(path);
    good = good && reader.take().records().size() >= events;
  });
  std::filesystem::remove(path);
  if (!good) std::printf("the generated history is not clean, or was not read back\n");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::drill

int main(int count, char** words) {
  const long long events = count > 1 ? std::atoll(words[1]) : 10'000'000;
  if (events <= 0) {
    std::fprintf(stderr, "checker_bench: EVENTS must be a whole number from 1\n");
    return 2;
  }
  return leasehold::drill::run(static_cast<std::size_t>(events));
}
