// How a pooler in front of the server gives its sessions out.
#pragma once

#include "connection.h"
#include "options.h"
#include "waiting/call_wait.h"

namespace leasehold::postgres {

enum class Pooling {
  per_transaction,  // proved: two connections that were open at once had one session in turn
  not_proved,
};

// Makes two connections for it. The server's own process number tells the sessions apart.
Pooling find_pooling(const Host& host, const CallContext& context, const waiting::Alarm& closing);

}  // namespace leasehold::postgres
