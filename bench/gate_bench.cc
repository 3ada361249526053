// The gate beside nginx as a plain proxy, both before the same service, in turns, at 50
// connections. nginx compares no tokens; what the gate adds is what is measured.
//
//   gate_bench LEASEHOLD_PROGRAM [--quick]
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "bench/compare.h"
#include "bench/report.h"
#include "kit/system/fd.h"
#include "rig/port.h"
#include "rig/server_process.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold::bench;
using leasehold::kit::Fd;
using leasehold::rig::Port;
using leasehold::rig::ServerProcess;
using leasehold::rig::TempFolder;
using Clock = std::chrono::steady_clock;

constexpr int kConnections = 50;

// A server before or behind the others, on a port of its own.
struct Server {
  Port port;
  ServerProcess process;
};

Server start(Port port, std::vector<std::string> argv, const std::string& log) {
  const std::uint16_t number = port.number();
  return {std::move(port), ServerProcess({.argv = std::move(argv), .log = log, .answers = [number] {
                                            return leasehold::rig::accepts(number);
                                          }})};
}

// One worker each: the gate has one thread, and the machine few cores.
Server start_nginx(const TempFolder& folder, const std::string& name,
                   const std::string& http_block) {
  Port port = Port::take();
  const std::string place = folder.file(name);
  std::ofstream file(place + ".conf");
  file << "daemon off; master_process off; worker_processes 1; user root;\n"
       << "pid " << place << ".pid; error_log " << place << ".log;\n"
       << "events { worker_connections 1024; }\n"
       << "http { access_log off; keepalive_requests 1000000000;\n";
  for (const char* temp : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    file << temp << "_temp_path " << place << "-" << temp << ";\n";
  }
  const std::string listen = "server { listen " + port.address() + ";";
  file << http_block << listen
       << (name == "service" ? " location / { return 200 \"done\"; } } }\n"
                             : " location / {\n proxy_pass http://service; "
                               "proxy_http_version 1.1; proxy_set_header "
                               "Connection \"\"; } } }\n");
  file.close();
  return start(std::move(port), {"nginx", "-e", place + ".log", "-c", place + ".conf"},
               place + ".out");
}

Server start_service(const TempFolder& folder) {
  return start_nginx(folder, "service", "");
}

Server start_proxy(const TempFolder& folder, const Server& service) {
  return start_nginx(folder, "proxy",
                     "upstream service { server " + service.port.address() +
                         "; keepalive 64; keepalive_requests 1000000000; }\n");
}

Server start_gate(const TempFolder& folder, const Server& service, const std::string& program) {
  Port port = Port::take();
  std::vector<std::string> argv = {program,      "gate",
                                   "--listen",   port.address(),
                                   "--upstream", "http://" + service.port.address(),
                                   "--state",    folder.file("state")};
  return start(std::move(port), std::move(argv), folder.file("gate.log"));
}

// The request that a connection sends as its n-th.
using Request = std::function<std::string(int connection, long n)>;

struct Measured {
  double per_second = 0;
  double p99_millis = 0;
  double requests = 0;
};

// Microseconds of processor time that all threads of the server have used. What else runs on the
// machine hardly changes it.
double processor_micros(const Server& server) {
  double nanos = 0;
  const std::string tasks = "/proc/" + std::to_string(server.process.pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream file(task.path() / "schedstat");
    double ran = 0;
    file >> ran;
    nanos += ran;
  }
  return nanos / 1000;
}

// Connections that each send a request when the one before is answered; one thread.
class Clients {
 public:
  Clients(std::uint16_t port, Request request) : request_(std::move(request)) {
    for (int i = 0; i < kConnections; ++i) {
      clients_.push_back({.socket = leasehold::rig::connect_to(port)});
      epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<std::uint32_t>(i)}};
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, clients_.back().socket.get(), &event) != 0) {
        stop("epoll failed");
      }
    }
  }

  Measured run(std::chrono::milliseconds turn) {
    latencies_.clear();
    const auto began = Clock::now();
    for (int i = 0; i < kConnections; ++i) send(i);
    in_flight_ = kConnections;
    while (in_flight_ > 0) read_some(began + turn);
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    const auto requests = static_cast<double>(latencies_.size());
    return {requests / seconds, percentile(latencies_, 0.99), requests};
  }

 private:
  struct One {
    Fd socket;
    std::string in = {};
    long sent = 0;
    Clock::time_point since = {};
  };

  void send(int i) {
    One& one = clients_[static_cast<std::size_t>(i)];
    const std::string text = request_(i, one.sent++);
    one.since = Clock::now();
    if (::send(one.socket.get(), text.data(), text.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(text.size())) {
      stop("a request could not be sent");
    }
  }

  void read_some(Clock::time_point until) {
    epoll_event events[kConnections];
    const int ready = epoll_wait(epoll_.get(), events, kConnections, 30'000);
    if (ready <= 0) stop("no answer in 30 s");
    for (int e = 0; e < ready; ++e) {
      const int i = static_cast<int>(events[e].data.u32);
      if (!read_answer(clients_[static_cast<std::size_t>(i)])) continue;
      if (Clock::now() < until) {
        send(i);
      } else {
        --in_flight_;
      }
    }
  }

  // True if it is complete.
  bool read_answer(One& one) {
    char bytes[4096];
    const ssize_t got = recv(one.socket.get(), bytes, sizeof bytes, 0);
    if (got <= 0) stop("a connection was closed");
    one.in.append(bytes, static_cast<std::size_t>(got));
    const std::size_t head = one.in.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    if (!one.in.starts_with("HTTP/1.1 200")) stop("not an answer: " + one.in);
    const std::size_t length = one.in.find("Content-Length: ");
    if (length == std::string::npos) stop("an answer without length: " + one.in);
    const std::size_t size = std::strtoul(one.in.c_str() + length + 16, nullptr, 10);
    if (one.in.size() < head + 4 + size) return false;
    one.in.clear();
    latencies_.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - one.since).count());
    return true;
  }

  Request request_;
  Fd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  std::vector<One> clients_;
  std::vector<double> latencies_;
  int in_flight_ = 0;
};

std::string request_text(const std::string& method, const std::string& resource, long token,
                         const std::string& body) {
  std::string text = method + " /" + resource +
                     " HTTP/1.1\r\nHost: service\r\nLeasehold-Token: " + std::to_string(token) +
                     "\r\nLeasehold-Lineage: 00112233445566778899aabbccddeeff/bench\r\n"
                     "Leasehold-Request: 0123456789abcdef0123456789abcdef\r\n";
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

std::string resource(const char* prefix, int connection) {
  return prefix + std::to_string(connection);
}

// Both bounds are there, or neither: then the rows are for information.
void compare_proxies(const std::string& what, const Server& gate, const Server& nginx,
                     const Request& request, const Effort& effort, bool has_target) {
  Clients ours(gate.port.number(), request);
  Clients theirs(nginx.port.number(), request);
  ours.run(std::chrono::milliseconds(100));  // connections to the service, first marks
  theirs.run(std::chrono::milliseconds(100));
  std::vector<double> rates[2];
  std::vector<double> tails[2];
  std::vector<double> rate_ratios;
  std::vector<double> tail_ratios;
  double requests[2] = {0, 0};
  const double processor_before[2] = {processor_micros(gate), processor_micros(nginx)};
  for (int i = 0; i < effort.turns; ++i) {
    const Measured mine = ours.run(effort.turn);
    const Measured other = theirs.run(effort.turn);
    rates[0].push_back(mine.per_second);
    rates[1].push_back(other.per_second);
    tails[0].push_back(mine.p99_millis);
    tails[1].push_back(other.p99_millis);
    rate_ratios.push_back(mine.per_second / other.per_second);
    tail_ratios.push_back(mine.p99_millis / other.p99_millis);
    requests[0] += mine.requests;
    requests[1] += other.requests;
  }
  const double mine = (processor_micros(gate) - processor_before[0]) / requests[0];
  const double other = (processor_micros(nginx) - processor_before[1]) / requests[1];
  const double rate = percentile(rate_ratios, 0.5);
  const double tail = percentile(tail_ratios, 0.5);
  const auto rate_of = [&](int side) { return format(percentile(rates[side], 0.5), "%.0f per s"); };
  const auto tail_of = [&](int side) { return format(percentile(tails[side], 0.5), "%.1f ms"); };
  report({"Gate: " + what, rate_of(0), ""});
  report({"  nginx as a plain proxy", rate_of(1), ""});
  report({"  ratio", format(rate, "%.2f x"), has_target ? ">= 0.7 x" : "",
          !has_target || rate >= 0.7});
  report({"  p99 of the gate", tail_of(0), ""});
  report({"  p99 of nginx", tail_of(1), ""});
  report({"  ratio of p99", format(tail, "%.2f x"), has_target ? "<= 2 x" : "",
          !has_target || tail <= 2});
  report({"  processor time per request, gate", format(mine, "%.1f us"), ""});
  report({"  processor time per request, nginx", format(other, "%.1f us"), ""});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) stop("usage: gate_bench LEASEHOLD_PROGRAM [--quick]");
  const TempFolder folder;
  const Server service = start_service(folder);
  const Server nginx = start_proxy(folder, service);
  const Server gate = start_gate(folder, service, argv[1]);
  const Effort effort = effort_of(argc, argv, kConnections);
  const std::string body(100, 'x');
  compare_proxies(
      "PUT of 100 bytes, 50 holders", gate, nginx,
      [&](int i, long) { return request_text("PUT", resource("put", i), 1, body); }, effort, true);
  compare_proxies(
      "GET, 50 holders", gate, nginx,
      [](int i, long) { return request_text("GET", resource("get", i), 1, ""); }, effort, false);
  compare_proxies(
      "PUT, each with a new token", gate, nginx,
      [&](int i, long n) { return request_text("PUT", resource("new", i), n + 1, body); }, effort,
      false);
  return 0;
}
