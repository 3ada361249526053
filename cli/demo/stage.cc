#include "cli/demo/stage.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "cli/command/number.h"
#include "cli/command/own_program.h"
#include "cli/command/store_choice.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

// Longer than anything here takes on a busy machine; only a broken story waits for it.
constexpr auto kPatience = 10s;

std::filesystem::path make_folder() {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  expect(!error, "there is no temporary folder: " + error.message());
  std::string pattern = (parent / "leasehold-demo-XXXXXX").string();
  expect(mkdtemp(pattern.data()) != nullptr, "cannot create a folder in " + parent.string() + ": " +
                                                 std::generic_category().message(errno));
  return pattern;
}

process::Child start(const process::Command& command) {
  auto child = process::Child::start(command);
  if (!child) throw StoryBroken(child.error().message);
  return std::move(*child);
}

// Groups of their own: Ctrl-C is for the demo, which then ends them in order.
process::Command piped(std::vector<std::string> argv, int when_alone) {
  return {.argv = std::move(argv),
          .in = process::Piped{},
          .out = process::Piped{},
          .err = process::Piped{},
          .placement = process::Placement::own_group,
          .parent_death_signal = when_alone};
}

std::vector<std::string> worker_command(const Stage& stage, const std::string& name,
                                        const std::string& book, bool fenced) {
  std::vector<std::string> argv{stage.program(), "demo-worker", name, book,
                                "--store",       stage.store()};
  if (fenced) argv.emplace_back("--fenced");
  return argv;
}

Line parse(const std::string& text) {
  Line line;
  std::istringstream words(text);
  BootClock::rep nanoseconds = 0;
  words >> nanoseconds >> line.verb >> std::ws;
  line.at = BootTime(BootClock::duration(nanoseconds));
  std::getline(words, line.text);
  std::istringstream rest(line.text);
  for (std::string word; rest >> word;) line.words.push_back(word);
  return line;
}

}  // namespace

Stage::Stage(Signals& signals)
    : signals_(signals), folder_(make_folder()), program_(own_program()) {
  do_without_machine_id();
}

Stage::~Stage() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Stage::store() const {
  return sqlite_url(file("locks.db"));
}

bool Stage::wait_once(int fd, process::Deadline deadline) {
  pollfd events[] = {{signals_.fd(), POLLIN, 0}, {fd, POLLIN, 0}};
  int millis = -1;
  if (deadline) {
    const auto left = std::chrono::ceil<Millis>(*deadline - std::chrono::steady_clock::now());
    millis = static_cast<int>(std::max<Millis::rep>(left.count(), 0));
  }
  if (poll(events, std::size(events), millis) <= 0) return false;
  if (events[0].revents != 0 && signals_.take_end_request()) throw Interrupted{};
  return events[1].revents != 0;
}

bool Stage::wait(int fd, process::Deadline deadline) {
  for (;;) {
    if (wait_once(fd, deadline)) return true;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return false;
  }
}

void Stage::let_read(Millis span) {
  if (isatty(STDOUT_FILENO) == 1) wait(-1, process::within(span));
}

const std::string& Line::word(std::size_t index) const {
  expect(index < words.size(), "a worker said too little: " + verb + " " + text);
  return words[index];
}

std::int64_t Line::number(std::size_t index) const {
  const auto value = parse_number(word(index), kAnyNumber);
  expect(value.has_value(), "a worker said no number: " + verb + " " + text);
  return *value;
}

Actor::Actor(Stage& stage, std::string name, const std::string& book, bool fenced)
    : stage_(stage),
      name_(std::move(name)),
      child_(start(piped(worker_command(stage, name_, book, fenced), SIGKILL))) {}

void Actor::tell(std::string_view what) {
  expect(process::write_all(child_.in().get(), std::string(what) + "\n"), name_ + " has gone");
}

std::optional<std::string> Actor::next_line(process::Deadline deadline) {
  for (;;) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (!stage_.wait(child_.out().get(), deadline)) return std::nullopt;
    char buffer[1024];
    const ssize_t got = read(child_.out().get(), buffer, sizeof buffer);
    expect(got > 0, name_ + " has gone");
    unread_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::optional<Line> Actor::hear_within(std::string_view verb, Millis span) {
  const auto text = next_line(process::within(span));
  if (!text) return std::nullopt;
  Line line = parse(*text);
  expect(line.verb == verb, name_ + " should have said '" + std::string(verb) + "', but said '" +
                                line.verb + " " + line.text + "'");
  return line;
}

Line Actor::hear(std::string_view verb) {
  auto line = hear_within(verb, kPatience);
  expect(line.has_value(), name_ + " did not say '" + std::string(verb) + "' in time");
  return std::move(*line);
}

Line Actor::ask(std::string_view what, std::string_view verb) {
  tell(what);
  return hear(verb);
}

BootTime Actor::freeze() {
  const auto deadline = process::within(kPatience);
  expect(child_.signal(SIGSTOP), name_ + " could not be frozen");
  while (child_.take_stop() != SIGSTOP) {  // SIGCHLD wakes the wait
    expect(std::chrono::steady_clock::now() < *deadline, name_ + " did not stop");
    stage_.wait_once(-1, deadline);
  }
  return BootClock::now();
}

BootTime Actor::thaw() {
  const BootTime now = BootClock::now();
  expect(child_.signal(SIGCONT), name_ + " could not be thawed");
  return now;
}

void Actor::leave() {
  child_.in().reset();
  expect(stage_.wait(child_.pidfd(), process::within(kPatience)), name_ + " did not end");
  const auto status = child_.wait();
  expect(status.success(), name_ + " " + status.describe());
}

Job::Job(Stage& stage, std::vector<std::string> argv)
    : stage_(stage), child_(start(piped(std::move(argv), SIGTERM))), started_(BootClock::now()) {}

Job::~Job() {
  if (child_.poll()) return;
  child_.signal(SIGTERM);
  child_.wait_for(2s);
}

process::ExitStatus Job::finish() {
  expect(stage_.wait(child_.pidfd(), process::within(kPatience)), "a cron job did not end");
  return child_.wait();
}

}  // namespace leasehold::cli
