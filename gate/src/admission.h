// Who may pass the gate, without files and without a network.
#pragma once

#include <string>
#include <variant>

#include "fence/rule.h"
#include "leasehold/error.h"
#include "resource_state.h"

namespace leasehold::gate {

// What a request says to the fence. Nobody needs to wait for the answer to one that does not write.
struct Ticket {
  ResourceName resource;
  fence::Attempt attempt;
};

// Why a request does not pass.
struct Objection {
  enum class Why {
    fenced_out,        // a stale token, a foreign lineage, one number granted twice
    out_of_order,      // the holder's own later request has entered
    sequence_missing,  // the holder numbers its requests, and this one has no number
    unanswered,        // an earlier request got no answer and may still take effect
    too_many,          // the gate remembers as many resources as it may
    stopping,          // the gate ends
  };
  Why why;
  std::string sentence;
  Refusal numbers = {};
};

// The state after the request has entered, or why it may not.
std::variant<ResourceState, Objection> admit(const ResourceState& state, const Ticket& ticket);

}  // namespace leasehold::gate
