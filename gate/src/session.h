// One client's connection: reads its requests, asks the fence, passes them on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "body.h"
#include "gate_core.h"
#include "net.h"
#include "problem.h"

namespace leasehold::gate {

class Session {
 public:
  Session(GateCore& core, tcp::socket socket, std::string client);
  ~Session();

  // Until the client leaves, or the gate stops.
  Async<void> serve();

  // Ends it now if it waits for the next request.
  void close_if_idle();

 private:
  enum class After { keep, close };
  struct Forwarding;  // one request on its way
  struct Upload;      // a body that is sent while the answer comes

  Async<bool> read_request_head();
  Async<After> handle();
  Async<bool> read_small_body(const RequestHead& head, BodyDecoder& decoder);
  Async<std::optional<Objection>> enter(const Ticket& ticket, Turns::Visit*& visit);

  // `ticket`: null if it passes unfenced.
  Async<After> forward(const RequestHead& head, const Ticket* ticket);
  Async<bool> send_request(Forwarding& way);
  Async<bool> open_upstream(Forwarding& way);
  Async<void> upload(Forwarding& way, Upload& upload);
  Async<bool> upload_some(Forwarding& way);
  Async<void> relay(Forwarding& way);
  Async<void> relay_answer(Forwarding& way);
  Async<bool> relay_head(Forwarding& way, ResponseHead& response, std::string& text);
  Async<void> relay_body(Forwarding& way, const ResponseHead& response, std::string head);
  Async<void> send_to_client(Forwarding& way, std::array<std::string_view, 3> texts);
  void no_head(Forwarding& way, bool heard_something);
  void missed(Forwarding& way, const std::string& why, int status);
  void answer_is_complete(Forwarding& way, int status);
  void answered(Forwarding& way);

  // `body_read`: the next request can follow on this connection.
  Async<After> refuse(const RequestHead* head, Problem problem, bool body_read = false);
  Async<void> linger();
  void log_refusal(const RequestHead* head, const Problem& problem) const;

  GateCore& core_;
  Connection client_;
  const std::string address_;
  std::string head_;  // of the request that is being handled
  std::string body_;  // the part of its body that was read before it was forwarded
  bool idle_ = false;
};

}  // namespace leasehold::gate
