#include "control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <asio/read_until.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <cstring>

#include "kit/threads/thread_safety.h"
#include "kit/try.h"
#include "text.h"

namespace leasehold::gate {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxLine = 8 * 1024;
constexpr auto kPatience = 10s;

constexpr std::pair<ErrorCode, std::string_view> kCodes[] = {
    {ErrorCode::invalid, "invalid"}, {ErrorCode::unavailable, "unavailable"}};

std::string error_line(const Error& error) {
  std::string sentence = error.message;
  // The message may repeat what was asked, and an answer is one line.
  std::replace_if(
      sentence.begin(), sentence.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  for (const auto& [code, word] : kCodes) {
    if (code == error.code) return "error " + std::string(word) + " " + sentence + "\n";
  }
  return "error unavailable " + sentence + "\n";
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t space = std::min(line.find(' ', at), line.size());
    if (space > at) words.push_back(percent_decoded(line.substr(at, space - at)).value_or(""));
    at = space + 1;
  }
  return words;
}

Result<Version> carry_out(Turns& turns, const std::vector<std::string>& words) {
  const std::string& verb = words.front();
  if (verb == "clear" && words.size() == 2) {
    auto resource = TRY(ResourceName::parse(words[1]));
    return turns.clear(resource);
  }
  if (verb == "adopt" && words.size() == 4) {
    auto resource = TRY(ResourceName::parse(words[1]));
    auto number = TRY(TokenNumber::parse(words[2]));
    auto lineage = TRY(Lineage::parse(words[3]));
    return turns.adopt(resource, lineage, number);
  }
  return fail(ErrorCode::invalid, "the gate does not know the command '" + verb + "'");
}

// A short name for the socket: the system allows 107 bytes, and folders may have longer names.
std::string short_path(const kit::Fd& folder) {
  return "/proc/self/fd/" + std::to_string(folder.get()) + "/control";
}

kit::Fd open_folder(const StateFolder& folder) {
  return kit::Fd(open(folder.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// No descriptor: no gate is there.
kit::Fd connect_to_gate(const StateFolder& folder) {
  const kit::Fd place = open_folder(folder);
  kit::Fd peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = short_path(place);
  std::memcpy(address.sun_path, path.c_str(), std::min(path.size(), sizeof address.sun_path - 1));
  if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return kit::Fd();
  }
  return peer;
}

Error silent(const StateFolder& folder) {
  return Error(ErrorCode::unavailable, "the gate on " + folder.path + " does not answer");
}

Result<std::string> converse(const StateFolder& folder, int peer, const std::string& line) {
  if (send(peer, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
    return fail(silent(folder));
  }
  std::string answer;
  char bytes[4096];
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd readable{peer, POLLIN, 0};
    if (left <= 0ms || poll(&readable, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t got = recv(peer, bytes, sizeof bytes, 0);
    if (got < 0) break;
    if (got == 0) return answer;
    answer.append(bytes, static_cast<std::size_t>(got));
  }
  return fail(silent(folder));
}

Result<std::string> parse_answer(const StateFolder& folder, const std::string& answer) {
  if (answer.starts_with("ok\n")) return answer.substr(3);
  for (const auto& [code, word] : kCodes) {
    const std::string start = "error " + std::string(word) + " ";
    if (!answer.starts_with(start)) continue;
    std::string sentence = answer.substr(start.size());
    if (sentence.ends_with('\n')) sentence.pop_back();
    return fail(code, sentence);
  }
  return fail(silent(folder));
}

// Without a gate: the same on the ledger itself.
class OfflineLedger {
 public:
  Result<std::string> command(const StateFolder& folder, const std::string& line) {
    LedgerOptions options;
    options.durable = [this](Version version) { tell(version, false); };
    options.failed = [this](const Error&) { tell(0, true); };
    auto ledger = TRY(Ledger::open(folder, std::move(options)));
    Turns turns(
        ledger->states(),
        [&](const ResourceName& name, const ResourceState& state) {
          return ledger->write(name, state);
        },
        TurnOptions{});
    Version version = 0;
    const std::string answer = answer_command(turns, line, version);
    wait_for(version);
    TRY(ledger->close());
    return answer;
  }

 private:
  void tell(Version version, bool failed) {
    {
      const MutexLock lock(mutex_);
      durable_ = std::max(durable_, version);
      failed_ = failed;
    }
    changed_.notify_all();
  }
  void wait_for(Version version) {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_,
                  [&]() LEASEHOLD_REQUIRES(mutex_) { return failed_ || durable_ >= version; });
  }

  Mutex mutex_;
  ConditionVariable changed_;
  Version durable_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  bool failed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::string answer_command(Turns& turns, const std::string& line, Version& wait_for) {
  const auto words = words_of(line);
  if (words.empty()) return error_line(Error(ErrorCode::invalid, "the command is empty"));
  if (words.front() == "unanswered") {
    std::string answer = "ok\n";
    for (const ResourceName& name : turns.unanswered())
      answer += percent_encoded(name.str()) + "\n";
    return answer;
  }
  const auto version = carry_out(turns, words);
  if (!version) return error_line(version.error());
  wait_for = *version;
  return "ok\n";
}

Status ControlSocket::listen(const StateFolder& folder) {
  folder_ = open_folder(folder);
  path_ = folder.control();
  unlink(path_.c_str());
  std::error_code error;
  acceptor_.emplace(core_.io);
  acceptor_->open(Protocol(), error);
  if (!error) acceptor_->bind(Protocol::endpoint(short_path(folder_)), error);
  // Nobody can connect before listen().
  if (!error && chmod(path_.c_str(), 0600) != 0) error = {errno, std::generic_category()};
  if (!error) acceptor_->listen(16, error);
  if (!error) return {};
  return fail(ErrorCode::unavailable, "cannot listen on " + path_, error.message());
}

Async<void> ControlSocket::serve() {
  for (;;) {
    std::error_code error;
    auto socket =
        co_await acceptor_->async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted || !acceptor_->is_open()) co_return;
    if (error) {
      co_await pause(core_.io, kPauseWithoutFiles);
      continue;
    }
    co_await answer(std::move(socket));  // one at a time: these are an operator's commands
  }
}

Async<void> ControlSocket::answer(Protocol::socket accepted) {
  std::error_code error;
  // The timer's handler may come after the end of this function.
  const auto shared = std::make_shared<Protocol::socket>(std::move(accepted));
  Protocol::socket& socket = *shared;
  asio::steady_timer timer(core_.io, kPatience);
  timer.async_wait([shared](std::error_code stopped) {
    std::error_code ignored;
    if (!stopped) shared->close(ignored);
  });
  std::string line;
  co_await asio::async_read_until(socket, asio::dynamic_buffer(line, kMaxLine), '\n',
                                  asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  line.resize(line.find('\n'));
  Version version = 0;
  std::string text = answer_command(core_.turns, line, version);
  const bool safe = co_await durable_(version);
  if (!safe) text = error_line(Error(ErrorCode::unavailable, "the gate's disk failed"));
  co_await asio::async_write(socket, asio::buffer(text),
                             asio::redirect_error(asio::use_awaitable, error));
  if (text.starts_with("ok") && !line.starts_with("unanswered")) core_.log("done: " + line);
}

void ControlSocket::close() {
  std::error_code ignored;
  if (acceptor_) acceptor_->close(ignored);
  if (!path_.empty()) unlink(path_.c_str());
}

bool gate_runs(const StateFolder& folder) {
  return static_cast<bool>(connect_to_gate(folder));
}

Result<std::string> command(const StateFolder& folder, const std::string& line) {
  struct stat about {};
  if (stat(folder.ledger().c_str(), &about) != 0) {
    return fail(ErrorCode::unavailable, "there is no gate's ledger in " + folder.path);
  }
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (const kit::Fd gate = connect_to_gate(folder)) {
      const auto answer = converse(folder, gate.get(), line + "\n");
      if (!answer) return answer;
      return parse_answer(folder, *answer);
    }
    if (auto lock = FolderLock::take(folder)) {
      const auto answer = OfflineLedger().command(folder, line);
      if (!answer) return answer;
      return parse_answer(folder, *answer);
    } else if (lock.error().code != ErrorCode::busy) {
      return fail(std::move(lock.error()));
    }
    // A gate starts or stops just now.
    if (std::chrono::steady_clock::now() > end) return fail(silent(folder));
    poll(nullptr, 0, 20);
  }
}

}  // namespace leasehold::gate
