// Where the demo plays: its folder, its processes, and waiting for what they say.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/signals.h"
#include "leasehold/error.h"
#include "leasehold/process/child.h"
#include "leasehold/time.h"

namespace leasehold::cli {

// Something did not happen as the story tells it. Thrown, because every step can fail and none can
// go on: the processes and the folder are cleaned up on the way out.
class StoryBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
struct Interrupted {};  // by a signal that asks to end
struct OutputGone {};   // nobody can read the story any more

inline void expect(bool happened, const std::string& otherwise) {
  if (!happened) throw StoryBroken(otherwise);
}
template <class T>
T must(Result<T> result) {
  if (!result) throw StoryBroken(to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Stage {
 public:
  explicit Stage(Signals& signals);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string store() const;
  const std::string& program() const { return program_; }

  // True when `fd` can be read, false at the deadline or after any signal that does not ask to
  // end; Interrupted for one that does.
  bool wait_once(int fd, process::Deadline deadline);
  // The same, but only the deadline ends it.
  bool wait(int fd, process::Deadline deadline);

  // Time for a person to read; none if nobody is watching.
  void let_read(Millis span);

 private:
  Signals& signals_;
  std::filesystem::path folder_;
  std::string program_;
};

// What a worker said.
struct Line {
  BootTime at{};
  std::string verb;
  std::vector<std::string> words;
  std::string text;  // the words as they came

  std::int64_t number(std::size_t index) const;
  const std::string& word(std::size_t index) const;
};

// A worker process, which can be frozen. Killed if it is still there at the end.
class Actor {
 public:
  Actor(Stage& stage, std::string name, const std::string& book, bool fenced);

  void tell(std::string_view what);
  // The next line, which must begin with `verb`.
  Line hear(std::string_view verb);
  // The same, but nothing if none came within the span.
  std::optional<Line> hear_within(std::string_view verb, Millis span);
  Line ask(std::string_view what, std::string_view verb);

  // SIGSTOP, until the kernel says that it has stopped; and SIGCONT. Give the moment.
  BootTime freeze();
  BootTime thaw();

  // Ends it in good order.
  void leave();

 private:
  std::optional<std::string> next_line(process::Deadline deadline);
  Stage& stage_;
  std::string name_;
  process::Child child_;
  std::string unread_;
};

// A command to its end, with both of its outputs. Ended by SIGTERM if it is still there.
class Job {
 public:
  Job(Stage& stage, std::vector<std::string> argv);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  BootTime started() const { return started_; }
  pid_t pid() const { return child_.pid(); }
  process::Child& child() { return child_; }
  process::ExitStatus finish();
  // What it said, after finish().
  std::string out() { return process::read_all(child_.out().get(), process::within({})); }
  std::string err() { return process::read_all(child_.err().get(), process::within({})); }

 private:
  Stage& stage_;
  process::Child child_;
  BootTime started_;
};

}  // namespace leasehold::cli
