// Who may go to the upstream now. A passive state machine: requests, answers and syncs come in,
// permissions go out. It owns no thread and reads no clock; one thread uses it.
//
// A request goes when its mark is safe on disk, together with the note that it may be on its way
// (`open`), and when every earlier one that was forwarded has been answered. Earlier is: of a lower
// token, or of the same token with a lower sequence number.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission.h"
#include "leasehold/fence_admin.h"
#include "ledger.h"

namespace leasehold::gate {

using TurnClock = std::chrono::steady_clock;

struct TurnOptions {
  std::size_t max_resources = 100'000;
  // How long a resource stays noted as open after its last answer. While it is, the next request
  // of the same holder needs no sync; a crash within it makes the resource wait to be cleared.
  std::chrono::milliseconds close_after{100};
};

class Turns {
 public:
  using Write = std::function<Version(const ResourceName&, const ResourceState&)>;
  // Nothing: forward it. Called once, perhaps before enter() returns; must not call back.
  using Tell = std::function<void(std::optional<Objection>)>;

  class Visit;  // one request between enter() and its end

  // `states` as the ledger found them: what is open there is unanswered.
  Turns(const ResourceStates& states, Write write, TurnOptions options);
  ~Turns();

  // The visit must be ended by one of the three calls below, unless an objection was told.
  Visit* enter(Ticket ticket, Tell tell);

  void answered(Visit* visit, TurnClock::time_point now);
  void missed(Visit* visit);     // it was forwarded, and no answer will come
  void withdrawn(Visit* visit);  // not a byte of it was sent

  // From the ledger.
  void durable(Version version);

  // Notes resources as closed that have been quiet for a while.
  void tick(TurnClock::time_point now);
  void close_all_quiet() { tick(TurnClock::time_point::max()); }

  // Turns away everybody who waits or comes: nothing more will become durable.
  void stop();

  // Counts the missing answers of a resource, so that whoever finds out what became of one does not
  // clear a later one.
  std::uint64_t misses(const ResourceName& resource) const;

  // Lets requests to the resource in again after a missing answer. Gives the version to wait for.
  // Fails with `invalid` if nothing is unanswered there.
  [[nodiscard]] Result<Version> clear(const ResourceName& resource);
  [[nodiscard]] Result<Version> adopt(const ResourceName& resource, const Lineage& lineage,
                                      TokenNumber at_least);

  std::vector<ResourceName> unanswered() const;
  bool has_unanswered() const { return unanswered_ > 0; }
  std::size_t resources() const { return resources_.size(); }
  // Requests that may be at the upstream now.
  std::size_t on_their_way() const { return on_their_way_; }

 private:
  struct Resource;

  Resource* find_or_add(const ResourceName& name);
  void save(Resource& resource);
  void refuse(Resource& resource, Visit& visit, Objection objection);
  void look(Resource& resource);
  bool may_go(const Resource& resource, const Visit& visit) const;
  void end(Visit* visit);
  void close_when_quiet(Resource& resource, TurnClock::time_point now);

  Write write_;
  TurnOptions options_;
  std::unordered_map<std::string, std::unique_ptr<Resource>> resources_;
  Version durable_ = 0;
  std::deque<std::pair<Version, Resource*>> syncing_;
  std::deque<std::pair<TurnClock::time_point, Resource*>> quiet_;
  std::size_t on_their_way_ = 0;
  std::size_t unanswered_ = 0;
  bool stopping_ = false;
};

// What to tell a client whose resource waits to be cleared.
Objection unanswered_objection(const ResourceName& resource);

}  // namespace leasehold::gate
