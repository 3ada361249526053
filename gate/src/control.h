// How the operator's commands reach a gate: lines over a socket in its state folder. Whoever may
// write there may command it.
//
//   clear <resource>                      names are percent-encoded
//   adopt <resource> <number> <lineage>
//   unanswered
//
// The answer is "ok" and lines of names, or "error <code> <sentence>".
#pragma once

#include <asio/local/stream_protocol.hpp>

#include <functional>
#include <string>

#include "gate_core.h"
#include "kit/system/fd.h"
#include "leasehold/error.h"
#include "state_folder.h"

namespace leasehold::gate {

// One command, carried out. `wait_for` gets the version that must be durable before it is told.
std::string answer_command(Turns& turns, const std::string& line, Version& wait_for);

// The gate's side.
class ControlSocket {
 public:
  // `durable`: waits until a version is safe.
  using Durable = std::function<Async<bool>(Version)>;
  ControlSocket(GateCore& core, Durable durable) : core_(core), durable_(std::move(durable)) {}

  // Fails with `unavailable`.
  [[nodiscard]] Status listen(const StateFolder& folder);
  Async<void> serve();
  void close();

 private:
  using Protocol = asio::local::stream_protocol;
  Async<void> answer(Protocol::socket socket);

  GateCore& core_;
  Durable durable_;
  kit::Fd folder_;
  std::string path_;
  std::optional<Protocol::acceptor> acceptor_;
};

// Whether a gate answers there.
bool gate_runs(const StateFolder& folder);

// The operator's side: to the gate that runs, or to the ledger if none does. Gives the lines after
// "ok".
[[nodiscard]] Result<std::string> command(const StateFolder& folder, const std::string& line);

}  // namespace leasehold::gate
