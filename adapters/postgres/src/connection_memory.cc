#include "connection_memory.h"

#include <libpq-events.h>

#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace leasehold::postgres {
namespace {

struct Memory {
  std::map<std::string, Preparation, std::less<>> preparations;
  LastEntry last_entry;
  std::optional<bool> own_session;
  std::optional<TransactionId> open;  // and no other since
  const char* settings = nullptr;
};

int on_event(PGEventId event, void* info, void*);

Memory* memory_of(const PGconn* connection) {
  return static_cast<Memory*>(PQinstanceData(connection, on_event));
}

bool is_of_transactions(std::string_view command) {
  return command == "COMMIT" || command == "ROLLBACK" || command == "BEGIN" ||
         command == "START TRANSACTION" || command == "PREPARE TRANSACTION";
}

int on_event(PGEventId event, void* info, void*) {
  if (event == PGEVT_RESULTCREATE) {
    const auto* created = static_cast<PGEventResultCreate*>(info);
    Memory* memory = memory_of(created->conn);
    if (memory != nullptr && is_of_transactions(PQcmdStatus(created->result))) {
      memory->open.reset();
    }
  }
  if (event == PGEVT_CONNRESET) {
    Memory* memory = memory_of(static_cast<PGEventConnReset*>(info)->conn);
    if (memory != nullptr) *memory = {};
  }
  if (event == PGEVT_CONNDESTROY) {
    const std::unique_ptr<Memory> dying(memory_of(static_cast<PGEventConnDestroy*>(info)->conn));
  }
  return 1;
}

Memory* made_memory_of(PGconn* connection) {
  if (Memory* made = memory_of(connection); made != nullptr) return made;
  auto memory = std::make_unique<Memory>();
  if (PQregisterEventProc(connection, on_event, "leasehold", nullptr) == 0) return nullptr;
  if (PQsetInstanceData(connection, on_event, memory.get()) == 0) return nullptr;
  return memory.release();  // the connection's now: see PGEVT_CONNDESTROY
}

// Where there is no room for it, nothing is remembered.
template <class Change>
void change_memory(PGconn* connection, Change change) noexcept {
  try {
    if (Memory* memory = made_memory_of(connection); memory != nullptr) change(*memory);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

Preparation preparation_of(const PGconn* connection, const NamedStatement& statement) {
  const Memory* memory = memory_of(connection);
  if (memory == nullptr) return Preparation::not_yet;
  const auto found = memory->preparations.find(statement.name);
  return found == memory->preparations.end() ? Preparation::not_yet : found->second;
}

void remember(PGconn* connection, const NamedStatement& statement, Preparation state) noexcept {
  change_memory(connection, [&](Memory& memory) { memory.preparations[statement.name] = state; });
}

std::optional<bool> has_own_session(const PGconn* connection) {
  const Memory* memory = memory_of(connection);
  return memory == nullptr ? std::nullopt : memory->own_session;
}

void remember_own_session(PGconn* connection, bool own) noexcept {
  change_memory(connection, [&](Memory& memory) { memory.own_session = own; });
}

void watch_transaction(PGconn* connection, TransactionId transaction) noexcept {
  change_memory(connection, [&](Memory& memory) { memory.open = transaction; });
}

bool may_have_ended(const PGconn* connection, TransactionId transaction) {
  const Memory* memory = memory_of(connection);
  return memory == nullptr || memory->open != transaction;
}

const char* settings_of(const PGconn* connection) {
  const Memory* memory = memory_of(connection);
  return memory == nullptr ? nullptr : memory->settings;
}

bool begin_each_with(PGconn* connection, const char* settings) noexcept {
  change_memory(connection, [&](Memory& memory) { memory.settings = settings; });
  return settings_of(connection) == settings;
}

bool entered_last(const PGconn* connection, const LastEntry& entry) {
  const Memory* memory = memory_of(connection);
  return memory != nullptr && memory->last_entry == entry;
}

void remember(PGconn* connection, LastEntry entry) noexcept {
  change_memory(connection, [&](Memory& memory) { memory.last_entry = std::move(entry); });
}

}  // namespace leasehold::postgres
