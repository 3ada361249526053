// A gate inside the test, between a plain client and a scripted service.
#pragma once

#include <gmock/gmock.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "http_client.h"
#include "leasehold/gate/gate.h"
#include "rig/temp_folder.h"
#include "scripted_upstream.h"
#include "tokens.h"

namespace leasehold::gate {

class GateTest : public ::testing::Test {
 protected:
  ~GateTest() override { end_gate(); }

  GateOptions options() const {
    GateOptions options;
    options.listen = "127.0.0.1:0";
    options.upstream = upstream_->url();
    options.state = folder_.file("state");
    return options;
  }
  void start_gate() { start_gate(options()); }
  void start_gate(GateOptions options) {
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_ += std::string(line) + "\n";
    };
    auto gate = Gate::open(std::move(options));
    ASSERT_TRUE(gate) << to_string(gate.error());
    gate_ = std::move(*gate);
    thread_ = std::thread([this] { ended_ = gate_->run(); });
  }
  // A service that leaves bodies to the test.
  void start_gate_without_bodies() {
    upstream_ = std::make_unique<ScriptedUpstream>(ScriptedUpstream::Options{.read_bodies = false});
    start_gate();
  }
  // What run() said.
  Status end_gate() {
    if (gate_ && thread_.joinable()) {
      gate_->stop();
      thread_.join();
    }
    gate_.reset();
    return ended_;
  }
  std::uint16_t port() const {
    const std::string address = gate_->address();
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  HttpClient client() const { return HttpClient(port()); }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  static FieldList with_token(std::int64_t number, std::uint8_t request) {
    return token_fields(test_token(number, request));
  }
  static FieldList with_sequence(std::int64_t number, std::uint8_t request, std::int64_t sequence) {
    FieldList fields = with_token(number, request);
    fields.emplace_back("Leasehold-Sequence", std::to_string(sequence));
    return fields;
  }
  static std::string request_text(const std::string& line, const FieldList& fields,
                                  const std::string& rest) {
    std::string text = line + " HTTP/1.1\r\nHost: test\r\n";
    for (const auto& [key, value] : fields) text += key + ": " + value + "\r\n";
    return text + rest;
  }
  static nlohmann::json problem(const Reply& reply) {
    EXPECT_EQ(reply.fields.at("content-type"), "application/problem+json");
    const auto json = nlohmann::json::parse(reply.body, nullptr, false);
    EXPECT_EQ(json.value("status", 0), reply.status);
    EXPECT_FALSE(json.value("title", "").empty());
    EXPECT_FALSE(json.value("detail", "").empty());
    return json;
  }
  static std::string type_of(const Reply& reply) {
    if (reply.status == 0) return "no reply";
    const std::string type = problem(reply).value("type", "");
    const std::string start = "urn:leasehold:gate:";
    EXPECT_TRUE(type.starts_with(start));
    return type.substr(start.size());
  }
  // Asks in a thread of its own, for requests that are not answered at once.
  struct Pending {
    std::thread thread;
    std::shared_ptr<Reply> reply = std::make_shared<Reply>();
    Reply get() {
      thread.join();
      return *reply;
    }
  };
  Pending ask_later(std::string method, std::string target, FieldList fields, std::string body) {
    Pending pending;
    pending.thread = std::thread(
        [=, this, reply = pending.reply] { *reply = client().ask(method, target, fields, body); });
    return pending;
  }
  // From now on the service answers every request so.
  void answer_everything(const std::string& text = "ok") {
    upstream_->answer_by([text](Arrival& arrival) {
      arrival.answer(200, text);
      return true;
    });
  }
  // A request that the service answers.
  int served(const FieldList& fields, const std::string& method = "PUT",
             const std::string& target = "/a") {
    Pending pending = ask_later(method, target, fields, "y");
    upstream_->next()->answer(200);
    return pending.get().status;
  }
  // One that reaches the service, which breaks off.
  int lost(const FieldList& fields, const std::string& method = "PUT",
           const std::string& target = "/a") {
    Pending pending = ask_later(method, target, fields, method == "PUT" ? "x" : "");
    upstream_->next()->hang_up();
    return pending.get().status;
  }
  // Everything that has been sent to the gate before has been looked at: it serves one thread.
  void settle() {
    HttpClient other = client();
    EXPECT_EQ(other.ask("TRACE", "/").status, 501);
  }

  leasehold::rig::TempFolder folder_;
  std::unique_ptr<ScriptedUpstream> upstream_ = std::make_unique<ScriptedUpstream>();
  std::unique_ptr<Gate> gate_;
  std::thread thread_;
  Status ended_;
  std::mutex mutex_;
  std::string log_;
};

}  // namespace leasehold::gate
