// The gate as a proxy: what goes in comes out, in constant memory, whatever the other side does.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "gate_fixture.h"
#include "text.h"

namespace leasehold::gate {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class GateProxyTest : public GateTest {};

TEST_F(GateProxyTest, PassesEverythingOnButWhatSpeaksOfTheConnection) {
  start_gate();
  HttpClient holder = client();
  holder.send(request_text(
      "PATCH /a/b;c=d?q=%41&r=\"", with_token(33, 1),
      "X-One: 1\r\nx-one:  two\t\r\nCookie: a=b\r\nConnection: keep-alive, X-Mine\r\nX-Mine: "
      "secret\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: trailers\r\nUpgrade: h2c\r\n"
      "Content-Length: 3\r\n\r\nabc"));
  const auto arrival = upstream_->next();
  ASSERT_TRUE(arrival);
  EXPECT_THAT(arrival->head, StartsWith("PATCH /a/b;c=d?q=%41&r=\" HTTP/1.1\r\nHost: test\r\n"));
  EXPECT_EQ(arrival->body, "abc");
  for (const char* line :
       {"Leasehold-Token: 33", "X-One: 1", "x-one: two", "Cookie: a=b", "Content-Length: 3"}) {
    EXPECT_TRUE(arrival->has_line(line)) << line << "\n" << arrival->head;
  }
  for (const char* gone :
       {"Connection", "secret", "Keep-Alive", "TE:", "Upgrade", "Via", "X-Forw"}) {
    EXPECT_THAT(arrival->head, Not(HasSubstr(gone)));
  }
  arrival->send(
      "HTTP/1.1 418 I'm a  teapot\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: X-Hop\r\n"
      "X-Hop: 1\r\nX-Obs: \xe4\r\nContent-Length: 4\r\n\r\nbrew");
  const std::string head = holder.head();
  EXPECT_EQ(head,
            "HTTP/1.1 418 I'm a  teapot\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Obs: \xe4\r\n"
            "Content-Length: 4\r\n");
  arrival->finish();
}

TEST_F(GateProxyTest, SaysWhoAskedIfToldTo) {
  GateOptions open = options();
  open.add_forwarded = true;
  start_gate(std::move(open));
  HttpClient holder = client();
  FieldList fields = with_token(33, 1);
  fields.emplace_back("X-Forwarded-For", "10.0.0.1");
  fields.emplace_back("Via", "1.0 fred");
  holder.send(request_text("GET /a", fields, "\r\n"));
  const auto arrival = upstream_->next();
  EXPECT_TRUE(arrival->has_line("X-Forwarded-For: 10.0.0.1, 127.0.0.1")) << arrival->head;
  EXPECT_TRUE(arrival->has_line("Via: 1.0 fred, 1.1 leasehold-gate")) << arrival->head;
  arrival->answer(200);
  EXPECT_THAT(holder.head(), HasSubstr("Via: 1.1 leasehold-gate\r\n"));
}

TEST_F(GateProxyTest, ChunksAndTrailersBothWays) {
  start_gate();
  HttpClient holder = client();
  holder.send(request_text("POST /a", with_token(33, 1),
                           "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n"));
  settle();
  holder.send("4\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n");
  const auto arrival = upstream_->next();
  EXPECT_EQ(arrival->body, "abcdefg|X-Sum: 7");
  arrival->send(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\nX-T: "
      "1\r\n\r\n");
  arrival->finish();
  const Reply reply = holder.reply();
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.body, "hello!");
  EXPECT_EQ(reply.trailer, "X-T: 1\r\n");
}

TEST_F(GateProxyTest, AnAnswerThatEndsWithTheConnection) {
  start_gate();
  Pending pending = ask_later("GET", "/a", with_token(33, 1), "");
  const auto arrival = upstream_->next();
  arrival->send("HTTP/1.0 200 OK\r\n\r\nall of ");
  arrival->send("it");
  arrival->hang_up();
  const Reply reply = pending.get();
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.body, "all of it");
}

TEST_F(GateProxyTest, AnswersWithoutABody) {
  start_gate();
  HttpClient holder = client();
  for (const auto& [method, status] :
       {std::pair("HEAD", "200 OK"), std::pair("GET", "304 Not Modified"),
        std::pair("PUT", "204 No Content")}) {
    holder.send(request_text(std::string(method) + " /a", with_token(33, 1), "\r\n"));
    const auto arrival = upstream_->next();
    const bool none = std::string(status).starts_with("204");
    arrival->send("HTTP/1.1 " + std::string(status) +
                  (none ? "\r\n\r\n" : "\r\nContent-Length: 500\r\n\r\n"));
    arrival->finish();
    EXPECT_THAT(holder.head(), StartsWith("HTTP/1.1 " + std::string(status)));
  }
  EXPECT_EQ(upstream_->connections(), 1) << "kept alive";
}

// A service that looks for no body there would take it for the next request.
TEST_F(GateProxyTest, ABodyThatNobodyExpectsIsTheLastOnItsConnection) {
  start_gate();
  answer_everything();
  HttpClient holder = client();
  for (const char* method : {"GET", "HEAD", "DELETE", "OPTIONS"}) {
    const int before = upstream_->connections();
    bool closes = false;
    upstream_->answer_by([&](Arrival& arrival) {
      closes = arrival.has_line("Connection: close");
      if (arrival.method() == "HEAD") {
        arrival.send("HTTP/1.1 200 OK\r\n\r\n");
        arrival.finish();
      } else {
        arrival.answer(200);
      }
      return true;
    });
    EXPECT_EQ(holder.ask(method, "/a", with_token(33, 1), "PUT /b HTTP/1.1\r\n").status, 200);
    EXPECT_TRUE(closes) << method;
    EXPECT_EQ(holder.ask(method, "/a", with_token(33, 1)).status, 200);
    EXPECT_FALSE(closes) << method;
    EXPECT_EQ(upstream_->connections(), before + (before == 0 ? 2 : 1)) << method;
  }
}

TEST_F(GateProxyTest, ABodyThatMustNotBeThereEndsTheConnection) {
  start_gate();
  HttpClient holder = client();
  holder.send(request_text("PUT /a", with_token(33, 1), "\r\n"));
  const auto arrival = upstream_->next();
  arrival->send("HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\n");
  EXPECT_EQ(holder.head(), "HTTP/1.1 204 No Content\r\n");
  arrival->finish();
  Pending next = ask_later("PUT", "/a", with_token(34, 2), "y");
  upstream_->next()->answer(201);
  EXPECT_EQ(next.get().status, 201);
  EXPECT_EQ(upstream_->connections(), 2) << "another connection";
}

TEST_F(GateProxyTest, ExpectContinue) {
  start_gate_without_bodies();
  HttpClient holder = client();
  holder.send(request_text("PUT /a", with_token(33, 1),
                           "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
  const auto arrival = upstream_->next();
  EXPECT_TRUE(arrival->has_line("Expect: 100-continue"));
  arrival->send("HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(holder.head(), "HTTP/1.1 100 Continue\r\n");
  holder.send("hello");
  EXPECT_EQ(arrival->read(5), "hello");
  arrival->send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
  EXPECT_EQ(holder.head(), "HTTP/1.1 103 Early Hints\r\nLink: x\r\n");
  arrival->answer(201, "made");
  EXPECT_EQ(holder.reply().status, 201);

  holder.send(request_text("PUT /a", with_token(32, 1),
                           "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_EQ(holder.reply().status, 409) << "a stale one need not send its body";
}

TEST_F(GateProxyTest, AnEarlyAnswerEndsTheUpload) {
  start_gate_without_bodies();
  HttpClient holder = client();
  holder.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 100000000\r\n\r\nbegin"));
  const auto arrival = upstream_->next();
  arrival->answer(413, "too large");
  const Reply reply = holder.reply();
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.body, "too large");
  EXPECT_EQ(reply.fields.at("connection"), "close");
  Pending next = ask_later("PUT", "/a", with_token(34, 2), "y");
  upstream_->next()->answer(200);
  EXPECT_EQ(next.get().status, 200) << "it was answered";
}

TEST_F(GateProxyTest, PipelinedRequestsAreAnsweredInOrder) {
  start_gate();
  upstream_->answer_by([](Arrival& arrival) {
    arrival.answer(200, arrival.target() + arrival.body);
    return true;
  });
  HttpClient holder = client();
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += request_text("PUT /a?" + std::to_string(i), with_token(33, 1),
                        "Content-Length: 1\r\n\r\nx");
  }
  holder.send("\r\n" + all);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(holder.reply().body, "/a?" + std::to_string(i) + "x");
}

TEST_F(GateProxyTest, AnIdleUpstreamConnectionThatWasClosedIsNotUsed) {
  start_gate();
  HttpClient holder = client();
  for (int i = 0; i < 5; ++i) {
    holder.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1\r\n\r\nx"));
    const auto arrival = upstream_->next();
    arrival->send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(holder.reply().status, 200);
    arrival->hang_up();  // after the answer, without a word
    settle();
  }
}

TEST_F(GateProxyTest, AReadIsRepeatedIfItsConnectionWasClosedUnderIt) {
  start_gate();
  HttpClient holder = client();
  holder.send(request_text("GET /a", with_token(33, 1), "\r\n"));
  upstream_->next()->answer(200);
  EXPECT_EQ(holder.reply().status, 200);
  holder.send(request_text("GET /a", with_token(33, 1), "\r\n"));
  const auto lost = upstream_->next();
  EXPECT_EQ(upstream_->connections(), 1);
  lost->hang_up();
  const auto again = upstream_->next();
  ASSERT_TRUE(again);
  again->answer(200, "second");
  EXPECT_EQ(holder.reply().body, "second");

  holder.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1\r\n\r\nx"));
  const auto write = upstream_->next();
  const int before = upstream_->arrived();
  write->hang_up();
  EXPECT_EQ(holder.reply().status, 502) << "a write may have been done";
  EXPECT_EQ(upstream_->arrived(), before);
}

std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  }
  return 0;
}

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

TEST_F(GateProxyTest, LargeBodiesGoThroughInConstantMemory) {
  start_gate_without_bodies();
  constexpr std::size_t size = 200 * kMegabyte;
  const std::string piece(kMegabyte, 'x');
  const std::size_t before = resident_kib();
  HttpClient holder = client();
  std::thread sender([&] {
    holder.send(request_text("PUT /a", with_token(33, 1),
                             "Content-Length: " + std::to_string(size) + "\r\n\r\n"));
    for (std::size_t sent = 0; sent < size; sent += piece.size()) holder.send(piece);
  });
  const auto arrival = upstream_->next();
  std::size_t got = arrival->body.size();
  while (got < size) {
    const std::size_t now = arrival->read(kMegabyte).size();
    if (now == 0) break;
    got += now;
  }
  sender.join();
  EXPECT_EQ(got, size);
  std::thread answerer([&] {
    arrival->send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
    for (std::size_t sent = 0; sent < size; sent += piece.size()) arrival->send(piece);
    arrival->finish();
  });
  EXPECT_THAT(holder.head(), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(holder.skip(size));
  answerer.join();
  // AddressSanitizer sets aside up to 256 MB of what was freed.
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t slack = 320 * 1024;
#else
  constexpr std::size_t slack = 32 * 1024;
#endif
  EXPECT_LT(resident_kib(), before + slack) << "of twice 200 MB nothing is kept";
}

// What is written without anybody reading must come to a stop: backpressure, both ways.
std::size_t write_until_stuck(int fd) {
  timeval limit{.tv_sec = 1, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const std::string piece(kMegabyte, 'x');
  std::size_t written = 0;
  for (;;) {
    const ssize_t now = ::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL);
    if (now <= 0) return written;
    written += static_cast<std::size_t>(now);
    if (written > 200 * kMegabyte) return written;
  }
}

TEST_F(GateProxyTest, WhoDoesNotReadHoldsUpWhoWrites) {
  upstream_ = std::make_unique<ScriptedUpstream>(ScriptedUpstream::Options{.read_bodies = false});
  GateOptions brief = options();
  brief.drain_timeout = Millis(0);
  start_gate(std::move(brief));
  const std::size_t before = resident_kib();
  HttpClient writer = client();
  writer.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1000000000\r\n\r\n"));
  ASSERT_TRUE(upstream_->next());
  EXPECT_LT(write_until_stuck(writer.fd()), 64 * kMegabyte);

  HttpClient reader = client();
  reader.send(request_text("GET /b", with_token(33, 1), "\r\n"));
  const auto arrival = upstream_->next();
  arrival->send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
  EXPECT_LT(write_until_stuck(arrival->fd), 64 * kMegabyte);
  EXPECT_LT(resident_kib(), before + 32 * 1024);
}

TEST_F(GateProxyTest, SlowHeadsAreCutOff) {
  GateOptions strict = options();
  strict.head_timeout = Millis(200);
  strict.idle_timeout = Millis(200);
  start_gate(std::move(strict));
  answer_everything();
  HttpClient silent = client();
  silent.send("");
  HttpClient slow = client();
  slow.send("GET /a HTTP/1.1\r\nHost: a\r\n");
  EXPECT_TRUE(slow.ends());
  EXPECT_TRUE(silent.ends());
  HttpClient dripping = client();
  dripping.send("");
  std::string head = request_text("GET /a", with_token(33, 1), "X: ");
  while (head.size() < 100'000) head += 'x';
  std::atomic<bool> cut = false;
  std::thread drip([&] {
    for (std::size_t i = 0; i < head.size() && !cut; ++i) {
      dripping.send(head.substr(i, 1));
      std::this_thread::sleep_for(1ms);
    }
  });
  char byte;
  const ssize_t got = recv(dripping.fd(), &byte, 1, 0);
  cut = true;
  drip.join();
  EXPECT_LE(got, 0) << "cut off although every byte came in time";
  EXPECT_EQ(upstream_->arrived(), 0);
}

TEST_F(GateProxyTest, SlowBodiesAreCutOffAndWriteNothing) {
  GateOptions strict = options();
  strict.client_timeout = Millis(200);
  start_gate(std::move(strict));
  answer_everything();
  HttpClient slow = client();
  slow.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 10\r\n\r\nhalf"));
  EXPECT_TRUE(slow.ends());
  EXPECT_EQ(upstream_->arrived(), 0);
  HttpClient next = client();
  EXPECT_EQ(next.ask("PUT", "/a", with_token(34, 2), "y").status, 200);
}

TEST_F(GateProxyTest, AClientThatDoesNotReadIsLeftBehind) {
  GateOptions strict = options();
  strict.client_timeout = Millis(300);
  start_gate(std::move(strict));
  HttpClient stuck = client();
  stuck.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1\r\n\r\nx"));
  const auto arrival = upstream_->next();
  std::thread answerer([&] { arrival->answer(200, std::string(50 * kMegabyte, 'z')); });
  Pending higher = ask_later("PUT", "/a", with_token(34, 2), "y");
  answerer.join();
  upstream_->next()->answer(200);
  EXPECT_EQ(higher.get().status, 200) << "its answer has come, whether it reads it or not";
}

// Only the pauses count, not the whole.
TEST_F(GateProxyTest, AnAnswerMayTakeLongIfItGoesOn) {
  GateOptions strict = options();
  strict.answer_timeout = Millis(3000);
  strict.client_timeout = Millis(500);
  start_gate(std::move(strict));
  Pending pending = ask_later("PUT", "/a", with_token(33, 1), "x");
  const auto arrival = upstream_->next();
  std::this_thread::sleep_for(700ms);  // the client waits, and nobody waits for the client
  arrival->send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(200ms);
    arrival->send("x");
  }
  arrival->finish();
  const Reply reply = pending.get();
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.complete);
}

TEST_F(GateProxyTest, AnUploadMayTakeLongIfItGoesOn) {
  GateOptions strict = options();
  strict.answer_timeout = Millis(3000);
  start_gate(std::move(strict));
  HttpClient slow = client();
  slow.send(request_text("PUT /a", with_token(33, 1), "Transfer-Encoding: chunked\r\n\r\n"));
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(200ms);
    slow.send("1\r\nx\r\n");
  }
  slow.send("0\r\n\r\n");
  const auto arrival = upstream_->next();
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->body, std::string(20, 'x'));
  arrival->answer(200);
  EXPECT_EQ(slow.reply().status, 200);
}

TEST_F(GateProxyTest, RequestsThatCouldBeTwo) {
  start_gate();
  answer_everything();
  const std::string good = request_text("POST /a", with_token(33, 1), "");
  const std::pair<std::string, int> cases[] = {
      {good + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {good + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", 400},
      {good + "Content-Length: -4\r\n\r\n", 400},
      {good + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {good + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
      {good + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n", 400},
      {good + "Transfer-Encoding: chunked\r\n\r\n5\nhello", 400},
      {good + "Transfer-Encoding : chunked\r\n\r\n", 400},
      {good + "Transfer-Encoding: identity\r\n\r\n", 501},
      {good + "X: a\r\n b\r\n\r\n", 400},
      {good + "X: a\nGET /evil HTTP/1.1\r\n\r\n", 400},
      {good + "Connection: Leasehold-Token\r\n\r\n", 400},
      {good + "Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc", 400},
      {good + "Connection: Host\r\n\r\n", 400},
      {"GET /a HTTP/1.0\r\n\r\n", 505},
      {"GET /a\r\n\r\n", 400},
      {"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"TRACE /a HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {request_text("GET /a", with_token(33, 1),
                    "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
       501},
      {"\x16\x03\x01\x02", 400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {std::string(40'000, 'a'), 431},
  };
  for (const auto& [text, status] : cases) {
    HttpClient stranger = client();
    stranger.send(text);
    EXPECT_EQ(stranger.reply().status, status) << text.substr(0, 300);
  }
  for (const char* target :
       {"/a%2Fb", "/../a", "/a/%2e%2e", "//a", "/a%00", "/a;x", "/a%ff", "*"}) {
    HttpClient stranger = client();
    EXPECT_EQ(stranger.ask("GET", target, with_token(33, 1)).status, 400) << target;
  }
  EXPECT_EQ(upstream_->arrived(), 0);
}

TEST_F(GateProxyTest, ManyConnectionsAtOnce) {
  GateOptions small = options();
  small.max_connections = 50;
  start_gate(std::move(small));
  answer_everything();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 100; ++i) {
    threads.emplace_back([&, i] {
      const std::string path = "/" + std::to_string(i);
      for (int round = 0; round < 3; ++round) {
        HttpClient holder = client();
        FieldList fields = with_token(33, 1);
        fields.emplace_back("Connection", "close");
        if (holder.ask("PUT", path, fields, "x").status == 200) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 300);
}

TEST_F(GateProxyTest, StoppingFinishesWhatIsInFlight) {
  start_gate();
  HttpClient idle = client();
  idle.send("");
  Pending pending = ask_later("PUT", "/a", with_token(33, 1), "x");
  const auto arrival = upstream_->next();
  gate_->stop();
  EXPECT_TRUE(idle.ends()) << "closed at once";
  arrival->answer(200, "done");
  const Reply reply = pending.get();
  EXPECT_EQ(reply.body, "done");
  EXPECT_EQ(reply.fields.at("connection"), "close");
  thread_.join();
  EXPECT_TRUE(ended_);
  gate_.reset();
  EXPECT_THAT(unanswered(folder_.file("state")).value(), ::testing::IsEmpty());
}

TEST_F(GateProxyTest, StoppingDoesNotWaitForEver) {
  GateOptions brief = options();
  brief.drain_timeout = Millis(100);
  start_gate(std::move(brief));
  Pending pending = ask_later("PUT", "/a", with_token(33, 1), "x");
  const auto arrival = upstream_->next();
  EXPECT_TRUE(end_gate());
  (void)pending.get();
  EXPECT_THAT(unanswered(folder_.file("state")).value(), ::testing::ElementsAre(name("a")));
  ASSERT_TRUE(clear_unanswered(folder_.file("state"), name("a"))) << "without a gate";
  start_gate();
  answer_everything();
  HttpClient holder = client();
  EXPECT_EQ(holder.ask("PUT", "/a", with_token(33, 1), "y").status, 200);
}

TEST_F(GateProxyTest, Health) {
  GateOptions open = options();
  open.admin = "127.0.0.1:0";
  start_gate(std::move(open));
  const std::string address = *gate_->admin_address();
  const auto admin_port =
      static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  HttpClient admin(admin_port);
  const Reply health = admin.ask("GET", "/-/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(nlohmann::json::parse(health.body)["unanswered"], 0);
  EXPECT_EQ(lost(with_token(33, 1)), 502);
  EXPECT_EQ(nlohmann::json::parse(admin.ask("GET", "/-/unanswered").body)["unanswered"][0], "a");
  EXPECT_EQ(admin.ask("POST", "/-/health").status, 405);
  EXPECT_EQ(admin.ask("GET", "/").status, 404);
  HttpClient stranger(admin_port);
  stranger.send("nonsense\r\n\r\n");
  EXPECT_EQ(stranger.reply().status, 400);
}

TEST_F(GateProxyTest, WhatCannotBeOpened) {
  const auto code_of = [](GateOptions wrong) {
    const auto gate = Gate::open(std::move(wrong));
    EXPECT_FALSE(gate);
    return gate ? ErrorCode::internal : gate.error().code;
  };
  for (const char* address : {"", "8080", "localhost:80", "127.0.0.1:70000", "127.0.0.1:x"}) {
    GateOptions wrong = options();
    wrong.listen = address;
    EXPECT_EQ(code_of(std::move(wrong)), ErrorCode::invalid) << address;
  }
  for (const char* url : {"", "https://a:1", "127.0.0.1:1", "http://", "http://a:0", "http://a:1/p",
                          "http://u:p@a:1", "http://a:99999"}) {
    GateOptions wrong = options();
    wrong.upstream = url;
    EXPECT_EQ(code_of(std::move(wrong)), ErrorCode::invalid) << url;
  }
  GateOptions wrong = options();
  wrong.resource_path = "/x";
  EXPECT_EQ(code_of(wrong), ErrorCode::invalid);
  wrong = options();
  wrong.probe = "/x";
  EXPECT_EQ(code_of(wrong), ErrorCode::invalid);
  wrong = options();
  wrong.state = "/proc/nowhere/state";
  EXPECT_EQ(code_of(wrong), ErrorCode::unavailable);
  wrong = options();
  wrong.listen = "127.0.0.1:" + std::to_string(upstream_->port());
  EXPECT_EQ(code_of(wrong), ErrorCode::unavailable) << "in use";
  start_gate();
  EXPECT_EQ(code_of(options()), ErrorCode::busy) << "another gate has the folder";
}

}  // namespace
}  // namespace leasehold::gate
