// The suite of all fences, through a real gate to a real service.
#include "testing/fence_conformance.h"

#include <nlohmann/json.hpp>

#include "fence/refusal.h"
#include "http_client.h"
#include "leasehold/fence_admin.h"
#include "leasehold/gate/adapter.h"
#include "leasehold/gate/gate.h"
#include "rig/port.h"
#include "rig/server_process.h"
#include "rig/temp_folder.h"
#include "text.h"

namespace leasehold::testing {
namespace {

using gate::FieldList;
using gate::HttpClient;
using gate::percent_encoded;
using gate::Reply;
using gate::token_fields;

enum class NamedIn { path, field };

Error error_of(const Reply& reply) {
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  const std::string detail = json.is_object() ? json.value("detail", "") : "no reply";
  if (reply.status == 409) {
    Error error(ErrorCode::fenced_out, detail);
    error.refusal =
        Refusal{json.value("offered", std::int64_t{0}), json.value("mark", std::int64_t{0}),
                fence::reason_named(json.value("reason", "")).value()};
    return error;
  }
  if (reply.status == 501) return Error(ErrorCode::unsupported, detail);
  if (reply.status == 400 || reply.status == 404 || reply.status == 428)
    return Error(ErrorCode::invalid, detail);
  return Error(ErrorCode::unavailable, std::to_string(reply.status) + " " + detail);
}

std::string hex(std::string_view text) {
  return leasehold::detail::to_hex(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

class GateConnection final : public FenceConnection {
 public:
  GateConnection(std::uint16_t gate, std::uint16_t service, std::string state, NamedIn named)
      : gate_(gate), service_(service), named_(named) {
    Url url;
    url.scheme = "gate";
    url.path = std::move(state);
    admin_ = gate::adapters().front().offers.open<FenceAdmin>(url).value();
  }

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    const Reply reply = gate_.ask("GET", target(resource), fields(resource, token, mode));
    if (reply.status != 200) return fail(error_of(reply));
    return reply.body;
  }
  Result<std::string> read_beside(std::string_view resource, const Token& token) override {
    FieldList all = fields(resource, token, EntryMode::repeatable);
    all.emplace_back("Leasehold-Access", "read");
    const Reply reply = gate_.ask("GET", target(resource), all);
    if (reply.status != 200) return fail(error_of(reply));
    return reply.body;
  }
  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t sequence) override {
    FieldList all = fields(resource, token, mode);
    if (sequence != 0) all.emplace_back("Leasehold-Sequence", std::to_string(sequence));
    const Reply reply = gate_.ask("PUT", target(resource), all, value);
    if (reply.status != 204) return fail(error_of(reply));
    return {};
  }
  Result<std::string> peek(std::string_view resource) override {
    const Reply reply = service_.ask("GET", target(resource), {{"Connection", "close"}});
    service_.close();
    if (reply.status != 200) return fail(error_of(reply));
    return reply.body;
  }
  Result<std::vector<FenceMark>> marks() override { return admin_->marks(); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return admin_->adopt(resource, lineage, at_least);
  }

 private:
  std::string target(std::string_view resource) const {
    if (named_ == NamedIn::path) return "/texts/" + percent_encoded(resource);
    return "/by-number/" + hex(resource) + "x";
  }
  FieldList fields(std::string_view resource, const Token& token, EntryMode mode) const {
    FieldList all = token_fields(token);
    if (named_ == NamedIn::field) all.emplace_back("Resource", percent_encoded(resource));
    if (mode == EntryMode::single) all.emplace_back("Leasehold-Entry", "single");
    return all;
  }

  HttpClient gate_;
  HttpClient service_;
  NamedIn named_;
  std::unique_ptr<FenceAdmin> admin_;
};

class GateFence final : public FenceUnderTest {
 public:
  explicit GateFence(NamedIn named)
      : named_(named),
        service_({.argv = {"python3", LEASEHOLD_TEXT_SERVICE, service_port_.str()},
                  .log = folder_.file("service.log"),
                  .answers = [this] { return rig::accepts(service_port_.number()); }}),
        gate_({.argv = gate_command(), .log = folder_.file("gate.log"), .answers = [this] {
                 return rig::accepts(gate_port_.number());
               }}) {}

  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<GateConnection>(gate_port_.number(), service_port_.number(), state(),
                                            named_);
  }
  // SIGKILL, and what an operator does after it.
  void restart() override {
    gate_.kill();
    HttpClient service(service_port_.number());
    while (service.ask("GET", "/-/quiet", {{"Connection", "close"}}).status != 204) service.close();
    gate_.start();
    const auto names = gate::unanswered(state());
    ASSERT_TRUE(names);
    for (const ResourceName& name : *names) {
      ASSERT_TRUE(gate::clear_unanswered(state(), name));
    }
  }
  bool update_is_one_transaction() const override { return false; }
  FenceWays ways() const override { return {.numbers = true}; }

 private:
  std::string state() const { return folder_.file("state"); }
  std::vector<std::string> gate_command() const {
    std::vector<std::string> argv = {LEASEHOLD_PROGRAM, "gate",
                                     "--listen",        gate_port_.address(),
                                     "--upstream",      "http://" + service_port_.address(),
                                     "--state",         state()};
    if (named_ == NamedIn::field) {
      argv.insert(argv.end(), {"--resource-field", "Resource"});
    } else {
      argv.insert(argv.end(), {"--resource", "/texts/{resource}", "--encoded-slashes"});
    }
    return argv;
  }

  NamedIn named_;
  rig::TempFolder folder_;
  rig::Port service_port_ = rig::Port::take();
  rig::Port gate_port_ = rig::Port::take();
  rig::ServerProcess service_;
  rig::ServerProcess gate_;
};

FenceCase named_in(const std::string& name, NamedIn named) {
  return {name, [named] { return std::make_unique<GateFence>(named); }};
}

INSTANTIATE_TEST_SUITE_P(Gate, FenceConformance,
                         ::testing::Values(named_in("path", NamedIn::path),
                                           named_in("field", NamedIn::field)),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
