// The page for monitoring: GET /-/health and GET /-/unanswered. It changes nothing.
#pragma once

#include "gate_core.h"
#include "net.h"

namespace leasehold::gate {

// One request, one answer.
Async<void> serve_admin(GateCore& core, tcp::socket socket);

}  // namespace leasehold::gate
