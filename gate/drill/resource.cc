// What a drill can do with the gate: the number as a text of an HTTP service behind it.
#include <algorithm>

#include "drill/runner/parts.h"
#include "kit/text/number.h"
#include "kit/text/percent.h"
#include "kit/try.h"
#include "leasehold/url.h"
#include "rig/port.h"
#include "service.h"

namespace leasehold::gate {
namespace {

using namespace drill;

class HttpResource final : public Resource {
 public:
  HttpResource(std::uint16_t gate, std::uint16_t service, std::string name)
      : gate_(gate), service_(service), name_(std::move(name)) {
    std::replace(name_.begin(), name_.end(), '/', '-');
    name_ = kit::percent_encoded(name_);
  }

  // The gate lets others in while a GET is under way. Who can still enter after it has read alone.
  Result<std::uint64_t> enter(const Pass& pass) override {
    const auto read = TRY(ask("GET", pass, ""));
    TRY(ask("GET", pass, ""));
    return kit::number_in<std::uint64_t>(read).value_or(0);
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    TRY(ask("PUT", pass, std::to_string(value)));
    return {};
  }

  // Past the gate.
  Result<std::uint64_t> peek() override {
    const auto text = TRY(converse(service_, "GET", "", ""));
    return kit::number_in<std::uint64_t>(text).value_or(0);
  }

 private:
  Result<std::string> ask(const std::string& method, const Pass& pass, const std::string& body) {
    const std::string fields = "Leasehold-Token: " + std::to_string(pass.token->number.value()) +
                               "\r\nLeasehold-Lineage: " + pass.token->lineage.str() +
                               "\r\nLeasehold-Request: " + pass.request.hex() + "\r\n";
    return converse(gate_, method, fields, body);
  }

  Result<std::string> converse(std::uint16_t port, const std::string& method,
                               const std::string& fields, const std::string& body) const {
    const std::string answer = rig::converse(
        port, method + " /" + name_ + " HTTP/1.1\r\nHost: drill\r\nConnection: close\r\n" + fields +
                  "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    const std::size_t head = answer.find("\r\n\r\n");
    if (head == std::string::npos) {
      return fail(ErrorCode::outcome_unknown, "the gate did not answer");
    }
    const std::string status = answer.substr(answer.find(' ') + 1, 3);
    if (status == "200") return answer.substr(head + 4);
    if (status == "409") return fail(ErrorCode::fenced_out, "the gate refused");
    return fail(ErrorCode::outcome_unknown, "the gate answered " + status);
  }

  const std::uint16_t gate_;
  const std::uint16_t service_;
  std::string name_;
};

std::uint16_t port_in(const std::string& digits) {
  return kit::number_in<std::uint16_t>(digits).value_or(0);
}

Result<std::unique_ptr<Resource>> open_resource_behind(const ResourceChoice& choice) {
  const auto url = TRY(Url::parse(choice.url));
  const std::uint16_t gate = port_in(url.hosts.empty() ? "" : url.hosts.front().port);
  const std::uint16_t service = port_in(url.option("service"));
  if (gate == 0 || service == 0) {
    return fail(ErrorCode::unsupported, "the drill takes no gate but its own: --fence http");
  }
  return std::make_unique<HttpResource>(gate, service, choice.name);
}

}  // namespace

drill::Parts drill_parts() {
  return {
      .fences = {
          {.name = "http",
           .schemes = {"http"},
           .start = [](const std::string& folder) { return std::make_unique<HttpService>(folder); },
           .open = open_resource_behind}}};
}

}  // namespace leasehold::gate
