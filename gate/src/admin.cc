#include "admin.h"

#include <nlohmann/json.hpp>

#include "problem.h"
#include "text.h"

namespace leasehold::gate {
namespace {

std::string health(const GateCore& core) {
  return json_text({{"status", core.stopping ? "stopping" : "ok"},
                    {"resources", core.turns.resources()},
                    {"unanswered", core.turns.unanswered().size()},
                    {"in_flight", core.turns.on_their_way()}}) +
         "\n";
}

std::string list_of_unanswered(const GateCore& core) {
  auto list = nlohmann::ordered_json::array();
  for (const ResourceName& name : core.turns.unanswered()) list.push_back(name.str());
  return json_text({{"unanswered", list}}) + "\n";
}

std::string answer(const GateCore& core, const RequestHead& head) {
  if (!head.is("GET"))
    return response_of(problem_of({405, "only GET is known here"}), false, false);
  std::string body;
  if (head.target == "/-/health") body = health(core);
  if (head.target == "/-/unanswered") body = list_of_unanswered(core);
  if (body.empty()) return response_of(problem_of({404, "there is no such page"}), false, false);
  const int status = core.stopping ? 503 : 200;
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason_phrase(status)) +
         "\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

}  // namespace

Async<void> serve_admin(GateCore& core, tcp::socket socket) {
  Connection connection(std::move(socket), core.watch);
  const NetTime by = NetClock::now() + core.options.head_timeout;
  const HeadRead read = co_await read_head(connection, by);
  if (read.error) co_return;
  std::string text;
  if (read.bad) {
    text = response_of(problem_of(*read.bad), false, false);
  } else {
    const auto head = parse_request(connection.in().substr(0, read.size));
    text = head ? answer(core, *head) : response_of(problem_of(head.error()), false, false);
  }
  const NetTime end = NetClock::now() + core.options.client_timeout;
  co_await connection.send(text, end);
  connection.end_of_sending();
}

}  // namespace leasehold::gate
