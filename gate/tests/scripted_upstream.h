// A service whose every answer the test decides.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kit/system/fd.h"
#include "rig/port.h"

namespace leasehold::gate {

// One request that has reached the service.
struct Arrival {
  std::string head;  // with the empty line
  std::string body;  // decoded; or what came with the head, if the test reads it
  int fd = -1;
  std::atomic<bool> done = false;

  std::string method() const { return head.substr(0, head.find(' ')); }
  std::string target() const;
  bool has_line(std::string_view line) const;

  void send(std::string_view bytes) const;
  std::string read(std::size_t size) const;  // from a body that is left to the test
  void answer(int status, std::string_view text = {});
  // Answers nothing.
  void hang_up();
  void finish();
};

class ScriptedUpstream {
 public:
  struct Options {
    bool read_bodies = true;  // false: the test does
  };
  ScriptedUpstream() : ScriptedUpstream(Options{}) {}
  explicit ScriptedUpstream(Options options);
  ~ScriptedUpstream();

  std::uint16_t port() const { return port_.number(); }
  std::string url() const { return "http://" + port_.address(); }

  // The next request that nobody has taken; null after half a minute.
  std::shared_ptr<Arrival> next();
  // How many have come so far.
  int arrived() const { return arrived_; }
  int connections() const { return connections_; }

  // Until nobody is connected any more, and so nothing can come.
  void wait_until_quiet();

  // From now on: asked on the connection's own thread, before next() would see it. True: answered.
  void answer_by(std::function<bool(Arrival&)> answer);

 private:
  void accept_loop();
  void serve(int fd);
  std::shared_ptr<Arrival> read_request(int fd, std::string& in) const;

  const Options options_;
  leasehold::rig::Port port_ = leasehold::rig::Port::take();
  kit::Fd listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::shared_ptr<Arrival>> waiting_;
  std::vector<std::shared_ptr<Arrival>> all_;
  std::function<bool(Arrival&)> answer_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
  std::atomic<int> arrived_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<bool> stopping_ = false;
};

}  // namespace leasehold::gate
