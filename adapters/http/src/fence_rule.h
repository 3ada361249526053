// Who may enter: the rules of a fence, without files and without a network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "leasehold/error.h"
#include "resource_state.h"

namespace leasehold::http {

// One request that wants to pass.
struct Entry {
  ResourceName resource;
  Token token;
  std::int64_t sequence = 0;  // orders the requests of one holder; 0: none was given
  bool once = false;          // a token that has entered may not enter again
  bool writes = true;         // false: it changes nothing, so nobody needs to wait for its answer
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

// Nothing if the request may enter.
std::optional<Objection> judge(const ResourceState& state, const Entry& entry);

// The state after the request has entered.
ResourceState after_entry(ResourceState state, const Entry& entry);

// The state that lets `lineage` in from `at_least` on, and nobody else. Fails with `invalid` if
// that would lower the mark of a lineage.
Result<ResourceState> after_adoption(ResourceState state, const ResourceName& resource,
                                     const Lineage& lineage, TokenNumber at_least);

}  // namespace leasehold::http
