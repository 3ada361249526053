// Marks as a test wants them.
#pragma once

#include <string>
#include <utility>

#include "fence/mark.h"
#include "testing/tokens.h"

namespace leasehold::fence {

inline const ResourceName kLedger = ResourceName::parse("ledger").value();

inline Mark held(std::int64_t number, char request, std::int64_t sequence = 0,
                 std::string write = "") {
  return {
      .lineage = leasehold::testing::lineage_of(),
      .holder = Mark::Holder{TokenNumber::of(number).value(),
                             leasehold::testing::request_of(request), sequence, std::move(write)}};
}

}  // namespace leasehold::fence
