#include "cli/tests/cli_fixture.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace leasehold::cli {

CliTest::CliTest() {
  char name[] = "/tmp/leasehold-cli-XXXXXX";
  folder_ = mkdtemp(name);
}

CliTest::~CliTest() {
  std::filesystem::remove_all(folder_);
}

process::Command CliTest::command(Words argv) const {
  const std::string programs = std::filesystem::path(LEASEHOLD_PROGRAM).parent_path();
  const char* path_now = std::getenv("PATH");
  return {.argv = std::move(argv),
          .environment = {{"XDG_STATE_HOME", folder_},
                          {"LEASEHOLD_STORE", std::nullopt},
                          {"LEASEHOLD_TOKEN", std::nullopt},
                          {"LEASEHOLD_LINEAGE", std::nullopt},
                          {"NO_COLOR", std::nullopt},
                          {"PATH", programs + ":" + (path_now ? path_now : "/usr/bin:/bin")}}};
}

Finished CliTest::finish(Child child) const {
  // Both pipes at once: a program that fills one of them must not block.
  std::string err;
  std::thread errors([&] { err = read_all(child.err().get(), within(kPatience)); });
  std::string out = read_all(child.out().get(), within(kPatience));
  errors.join();
  const auto status = child.wait_for(kPatience);
  EXPECT_TRUE(status) << "still running";
  return {status ? status->shell_status() : -1, out, err};
}

Finished CliTest::finish(Words argv, const std::string& input) const {
  process::Command what = command(std::move(argv));
  what.in = Piped{};
  what.out = Piped{};
  what.err = Piped{};
  what.placement = process::Placement::own_group;
  auto child = Child::start(what);
  if (!child) return {-1, "", child.error().message};
  write_all(child->in().get(), input);
  child->in().reset();
  return finish(std::move(*child));
}

Finished CliTest::leasehold(Words words) const {
  words.insert(words.begin(), LEASEHOLD_PROGRAM);
  return finish(std::move(words));
}

std::string CliTest::on_terminal(unsigned short columns, Words words) const {
  process::Pty pty = process::make_pty();
  const winsize size{24, columns, 0, 0};
  EXPECT_EQ(ioctl(pty.master.get(), TIOCSWINSZ, &size), 0);
  words.insert(words.begin(), LEASEHOLD_PROGRAM);
  process::Command what = command(std::move(words));
  what.environment.emplace_back("NO_COLOR", "1");
  what.out = process::FromFd{pty.slave.get()};
  auto child = Child::start(what);
  EXPECT_TRUE(child);
  pty.slave.reset();
  std::string text = read_all(pty.master.get(), within(kPatience));
  EXPECT_EQ(child->wait_for(kPatience), process::ExitStatus::exited(0));
  std::erase(text, '\r');
  return text;
}

Child CliTest::start(Words words) const {
  words.insert(words.begin(), "run");
  return start_piped(std::move(words));
}

Child CliTest::start_piped(Words words) const {
  words.insert(words.begin(), LEASEHOLD_PROGRAM);
  process::Command what = command(std::move(words));
  what.in = Piped{};
  what.out = Piped{};
  what.err = process::ToFile{path("errors"), true};
  auto child = Child::start(what);
  EXPECT_TRUE(child);
  return std::move(*child);
}

Child CliTest::start_ready(Words words) const {
  Child child = start(std::move(words));
  EXPECT_EQ(read_until(child.out().get(), "ready\n", within(kPatience)), "ready\n") << errors();
  return child;
}

std::string CliTest::errors() const {
  return read("errors");
}

void CliTest::write(const std::string& file, const std::string& text) const {
  std::ofstream(path(file)) << text;
}

std::string CliTest::read(const std::string& file) const {
  std::ifstream stream(path(file));
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

process::Pipe make_full_pipe() {
  process::Pipe pipe = process::make_pipe();
  // An opening of its own: O_NONBLOCK would be seen by all who share the pipe's.
  const process::Fd filler(
      open(("/proc/self/fd/" + std::to_string(pipe.write.get())).c_str(), O_WRONLY | O_NONBLOCK));
  while (::write(filler.get(), "................", 16) > 0) {
  }
  return pipe;
}

}  // namespace leasehold::cli
