// A part of Leasehold in the schema `leasehold` of the user's database: a table of its own, and the
// functions that go with it.
#pragma once

#include <string>

#include "session.h"

namespace leasehold::postgres {

struct LeaseholdPart {
  const char* name;     // for people: "outbox"
  const char* table;    // by whose name it is known to be there
  const char* version;  // the function that tells its version: "leasehold.outbox_version()"
  int number;           // the only version this program works with
  std::string ddl;
  const char* how;  // ends the sentence about a part that is missing
};

// Makes it unless it is there; racing installers agree. `invalid` inside a transaction.
[[nodiscard]] Status install_part(Session session, const LeaseholdPart& part);

// `unavailable` if it is missing or has another version.
[[nodiscard]] Status check_part(Session session, const LeaseholdPart& part);

// Puts `to` in for every `from`.
std::string replaced_all(std::string text, std::string_view from, std::string_view to);

}  // namespace leasehold::postgres
