// What all connections of one gate share. One thread.
#pragma once

#include <string>

#include "leasehold/gate/gate.h"
#include "net.h"
#include "ticket.h"
#include "turns.h"
#include "upstream.h"

namespace leasehold::gate {

struct GateCore {
  GateCore(GateOptions its_options, TicketReader reader, UpstreamAddress address,
           const ResourceStates& states, Turns::Write write)
      : options(std::move(its_options)),
        tickets(std::move(reader)),
        turns(states, std::move(write), TurnOptions{.max_resources = options.max_resources}),
        upstream(io, watch, std::move(address), options.connect_timeout, options.pool_timeout) {}

  void log(const std::string& line) const {
    if (options.log) options.log(line);
  }

  GateOptions options;
  asio::io_context io{1};
  TicketReader tickets;
  Turns turns;
  Watch watch;
  Upstream upstream;
  bool stopping = false;
};

}  // namespace leasehold::gate
