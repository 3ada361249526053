// Calls of one client that gather while one is out, and go together.
#include <algorithm>
#include <utility>

#include "world.h"

namespace leasehold::simulation {
namespace {

constexpr Time kPatience = 50 * kMillisecond;

}  // namespace

void World::gather(Client& client, std::uint32_t at) {
  if (client.out == 0) {
    client.out = at;
    return depart(client, at);
  }
  Call& call = calls_.items[at];
  call.gathered = true;
  client.gathered.push_back(at);
  plan(now_ + kPatience, EventKind::patience_ends, call.client, at);
  call.events += 2;
}

// What was out has come back.
void World::take_gathered(Client& client) {
  client.out = 0;
  std::vector<std::uint32_t> batch = std::exchange(client.gathered, {});
  std::erase_if(batch, [this](std::uint32_t at) {
    const bool stays = std::exchange(calls_.items[at].gathered, false);
    if (!stays) calls_.drop_event(at);
    return !stays;
  });
  if (batch.empty()) return;
  std::stable_partition(batch.begin(), batch.end(), [this](std::uint32_t at) {
    return calls_.items[at].kind == Call::Kind::renew;
  });
  client.out = batch.front();
  if (batch.size() == 1) {
    depart(client, batch.front());
  } else {
    depart_together(client, batch);
  }
  for (const std::uint32_t at : batch) calls_.drop_event(at);
}

// One message there, and one back.
void World::depart_together(Client& client, const std::vector<std::uint32_t>& batch) {
  outcome_.faults.add(Fault::gone_together);
  const bool lost = client.cannot_send || message_lost();
  const bool reply_lost = message_lost();
  const Time arrives = on_grid(now_ + delay());
  std::uint32_t before = 0;
  for (const std::uint32_t at : batch) {
    Call& call = calls_.items[at];
    if (lost) {
      outcome_.faults.add(Fault::request_lost);
      if (connection_breaks(call, at)) ++call.events;
      continue;
    }
    call.batch = true;
    call.reply_lost = reply_lost;
    const bool same_kind = before != 0 && calls_.items[before].kind == call.kind;
    call.neighbour = same_kind ? before : 0;
    before = at;
    plan(arrives, EventKind::call_arrives, call.client, at);
    ++call.events;
  }
}

void World::patience_ends(const Event& event) {
  Client& client = clients_[event.client];
  if (std::exchange(calls_.items[event.what].gathered, false)) {
    std::erase(client.gathered, event.what);
    calls_.drop_event(event.what);
    depart(client, event.what);
  }
  calls_.drop_event(event.what);
}

void World::forget_gathered(Client& client) {
  client.out = 0;
  for (const std::uint32_t at : std::exchange(client.gathered, {})) {
    calls_.items[at].gathered = false;
    calls_.drop_event(at);
  }
}

}  // namespace leasehold::simulation
