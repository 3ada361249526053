#include "desk.h"

#include <unistd.h>

#include <chrono>
#include <iostream>

#include "kinds_of_worker.h"
#include "kit/try.h"
#include "leasehold/process/io.h"
#include "ledger.h"

namespace leasehold::drill {
namespace {

constexpr auto kLongestWrite = std::chrono::seconds(5);

void say(const std::string& what) {
  process::write_all(STDOUT_FILENO, what + "\n");
}

}  // namespace

Status Desk::open(const std::string& resource) {
  if (resources_.contains(resource)) return {};
  ResourceChoice choice = plan_.resource;
  choice.name = resource;
  auto opened = TRY(open_resource(choice));
  resources_.emplace(resource, std::move(opened));
  return {};
}

void Desk::look(const Grant& grant) {
  // By a claim nobody looks without taking it from whoever has it.
  if (plan_.resource.fencing != Fencing::claim) {
    const auto seen = resource(grant).peek();
    reopen_after(seen, grant);
    if (!seen) return;
  }
  say("read " + std::to_string(grant.told));
}

Status Desk::work(const Grant& grant, Piece piece) {
  TRY(diary_.put(Diary::record(Kind::invoke, Operation::read, grant), grant));
  const auto read = resource(grant).enter(grant.pass);
  Record entered = Diary::record(kind_of(read), Operation::read, grant);
  entered.value = read.value_or(0);
  TRY(diary_.put(entered, grant));
  reopen_after(read, grant);
  if (!read) {
    say("late");
    return {};
  }
  say("entered " + std::to_string(grant.told) + " " + std::to_string(grant.ttl.count()) + " " +
      std::to_string(entered.token) + (piece ? " " + std::to_string(*piece) : ""));

  // The nemesis strikes here, if it does.
  std::string go;
  if (!std::getline(std::cin, go)) return {};

  Record writing = Diary::record(Kind::invoke, Operation::write, grant);
  writing.value = ++value_;
  writing.base = *read;
  writing.sequence = grant.pass.sequence;
  const auto how = TRY(write(grant, writing));
  say(how == Kind::ok ? "wrote" : how == Kind::fail ? "refused" : "unknown");
  return {};
}

// Again, with the same token and the same value, as long as there is no answer: a stale holder does
// not stop because its connection broke. A claim does not outlive its connection.
Result<Kind> Desk::write(const Grant& grant, Record writing) {
  const BootTime give_up = BootClock::now() + kLongestWrite;
  for (;;) {
    writing.kind = Kind::invoke;
    writing.time = now();
    TRY(diary_.put(writing, grant));
    const auto written = resource(grant).write(grant.pass, writing.value);
    writing.kind = kind_of(written);
    writing.time = now();
    TRY(diary_.put(writing, grant));
    reopen_after(written, grant);
    if (writing.kind != Kind::unknown) return writing.kind;
    if (plan_.resource.fencing == Fencing::claim) return writing.kind;
    while (!open(grant.resource())) {
      if (BootClock::now() > give_up) return writing.kind;
      pause_after_failure();
    }
    if (BootClock::now() > give_up) return writing.kind;
  }
}

}  // namespace leasehold::drill
