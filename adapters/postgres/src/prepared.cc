#include "prepared.h"

#include <libpq-events.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace leasehold::postgres {
namespace {

using Known = std::map<std::string, Preparation, std::less<>>;

int on_event(PGEventId event, void* info, void*);

Known* known_to(const PGconn* connection) {
  return static_cast<Known*>(PQinstanceData(connection, on_event));
}

int on_event(PGEventId event, void* info, void*) {
  if (event == PGEVT_CONNRESET) {
    Known* known = known_to(static_cast<PGEventConnReset*>(info)->conn);
    if (known != nullptr) known->clear();
  }
  if (event == PGEVT_CONNDESTROY) {
    const std::unique_ptr<Known> dying(known_to(static_cast<PGEventConnDestroy*>(info)->conn));
  }
  return 1;
}

}  // namespace

Preparation preparation_of(const PGconn* connection, const NamedStatement& statement) {
  const Known* known = known_to(connection);
  if (known == nullptr) return Preparation::not_yet;
  const auto found = known->find(statement.name);
  return found == known->end() ? Preparation::not_yet : found->second;
}

void remember(PGconn* connection, const NamedStatement& statement, Preparation state) {
  if (known_to(connection) == nullptr) {
    auto known = std::make_unique<Known>();
    if (PQregisterEventProc(connection, on_event, "leasehold", nullptr) == 0) return;
    if (PQsetInstanceData(connection, on_event, known.get()) == 0) return;
    (void)known.release();  // the connection's now: see PGEVT_CONNDESTROY
  }
  (*known_to(connection))[statement.name] = state;
}

}  // namespace leasehold::postgres
