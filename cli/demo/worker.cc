// One worker of the demo: a process of its own that takes a lease and adds to the account's book.
// It is told what to do next by lines on stdin, and says what happened by lines on stdout, each
// with the moment on the boot clock: "<nanoseconds> <verb> <details>".
#include <unistd.h>
#include <iostream>
#include <sstream>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/demo/book.h"
#include "cli/demo/demo.h"
#include "kit/try.h"
#include "leasehold/process/io.h"
#include "leasehold/sqlite/fence.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestWait = 10s;

void say(const std::string& what, BootTime when = BootClock::now()) {
  const std::string line = std::to_string(when.time_since_epoch().count()) + " " + what + "\n";
  process::write_all(STDOUT_FILENO, line);
}

class Worker {
 public:
  Worker(std::string name, Client client, Book book, std::optional<sqlite::Fence> fence)
      : name_(std::move(name)),
        client_(std::move(client)),
        book_(std::move(book)),
        fence_(std::move(fence)) {}

  // Until stdin ends.
  Status serve();

 private:
  Status act(const std::string& line);
  Status take();
  Status read();
  Status check() const;
  Status add(std::int64_t amount);
  Status give_back();

  // Runs the work on the book: behind the fence, if there is one.
  template <class Work>
  auto at_the_book(Work work) -> std::invoke_result_t<Work&> {
    if (!fence_) return work();
    return fence_->transaction(lease_->token(), [&](sqlite::OpenTransaction&) { return work(); });
  }
  std::string token() const { return std::to_string(lease_->token().number.value()); }

  const std::string name_;
  Client client_;
  const Book book_;
  const std::optional<sqlite::Fence> fence_;
  std::optional<FencedLease> lease_;
  std::int64_t seen_ = 0;  // the balance, as far as this worker knows
};

Status Worker::serve() {
  say("ready");
  for (std::string line; std::getline(std::cin, line);) {
    TRY(act(line));
  }
  return {};
}

Status Worker::act(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  std::int64_t amount = 0;
  words >> verb >> amount;
  if (verb == "take") return take();
  if (verb != "take" && !lease_) return fail(ErrorCode::invalid, "take the lock before: " + line);
  if (verb == "read") return read();
  if (verb == "check") return check();
  if (verb == "add") return add(amount);
  if (verb == "give-back") return give_back();
  return fail(ErrorCode::invalid, "a worker cannot do this: " + line);
}

Status Worker::take() {
  lease_.reset();
  auto lease = client_.acquire_fenced(kDemoLock, {.ttl = kDemoTtl});
  if (!lease && lease.error().code == ErrorCode::busy) {
    say("busy");
    lease = client_.acquire_fenced(kDemoLock, {.ttl = kDemoTtl, .wait = kLongestWait});
  }
  if (!lease) return fail(lease.error());
  lease_ = std::move(*lease);
  say("took " + token());
  return {};
}

Status Worker::read() {
  BootTime entered{};
  const auto balance = TRY(at_the_book([&] {
    entered = BootClock::now();
    return book_.balance();
  }));
  seen_ = balance;
  if (fence_) say("entered " + token(), entered);
  say("read " + std::to_string(seen_));
  return {};
}

Status Worker::check() const {
  TRY(lease_->require(kDemoTtl / 2));
  say("checked " + std::to_string(std::chrono::floor<Millis>(lease_->remaining()).count()));
  return {};
}

// Deliberately does not look at its lease: check() was the last look. What the lease would have
// said is only told afterwards.
Status Worker::add(std::int64_t amount) {
  const std::string state(to_string(lease_->state()));
  const BookLine line{name_, lease_->token().number.value(), amount, seen_ + amount};
  Status written = at_the_book([&] { return book_.append(line); });
  if (written) {
    say("wrote " + std::to_string(line.balance) + " " + state);
    return {};
  }
  const Error& error = written.error();
  if (error.code != ErrorCode::fenced_out || !error.refusal) return written;
  say("refused " + std::to_string(error.refusal->offered) + " " +
      std::to_string(error.refusal->mark) + " " + state + " " + error.message);
  return {};
}

Status Worker::give_back() {
  const auto outcome = TRY(lease_->release());
  say(outcome == ReleaseOutcome::released ? "released" : "too-late");
  return {};
}

class DemoWorker final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description("One worker of 'leasehold demo', which starts it.");
    arguments.positional("WORKER", name_, "What it is called");
    arguments.positional("BOOK", book_, "The account's database");
    arguments.flag("--fenced", fenced_, "Enter the fence before each step at the book");
    declare_store(arguments, store_);
    arguments.example("leasehold demo", "starts two of them");
  }

  Ending execute() override {
    const Status done = work();
    if (done) return ExitStatus::done;
    say("error " + to_string(done.error()));
    return report(done.error());
  }

 private:
  Status work() {
    auto owner = TRY(OwnerLabel::parse(name_));
    auto client = TRY(open_store(store_, {.owner = std::move(owner)}));
    auto book = TRY(Book::open(book_));
    std::optional<sqlite::Fence> fence;
    if (fenced_) {
      auto opened = TRY(sqlite::Fence::open(book.handle(), kDemoLock));
      fence = std::move(opened);
    }
    return Worker(name_, std::move(client), std::move(book), std::move(fence)).serve();
  }

  std::string name_;
  std::string book_;
  std::optional<std::string> store_;
  bool fenced_ = false;
};

}  // namespace

SubcommandEntry demo_worker_command() {
  return {"demo-worker", "One worker of the demo", make<DemoWorker>, true};
}

}  // namespace leasehold::cli
