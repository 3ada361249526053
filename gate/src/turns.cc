#include "turns.h"

#include <algorithm>
#include <tuple>

#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::gate {

class Turns::Visit {
 public:
  enum class Stage { waiting, forwarded, refused };

  Visit(Resource& where, Ticket what, Tell say)
      : resource(where), ticket(std::move(what)), tell(std::move(say)) {}

  Resource& resource;
  Ticket ticket;
  Tell tell;
  Stage stage = Stage::waiting;
  std::uint64_t generation = 0;
  Version needs = 0;                   // safe on disk before it is told anything
  std::optional<Objection> objection;  // refused: what to tell

  bool writes() const { return ticket.attempt.writes; }
  std::pair<std::uint64_t, std::int64_t> order() const {
    return {generation, ticket.attempt.sequence};
  }
};

struct Turns::Resource {
  explicit Resource(ResourceName its_name) : name(std::move(its_name)) {}

  ResourceName name;
  ResourceState state;
  std::uint64_t generation = 0;  // counts the changes of the holder
  Version version = 0;           // of the latest state given to the ledger
  bool unanswered = false;
  std::uint64_t misses = 0;
  TurnClock::time_point quiet_from = TurnClock::time_point::min();
  std::list<std::unique_ptr<Visit>> visits;

  bool has_writes() const {
    return std::any_of(visits.begin(), visits.end(), [](const auto& visit) {
      return visit->writes() && visit->stage != Visit::Stage::refused;
    });
  }
};

using Stage = Turns::Visit::Stage;

Objection unanswered_objection(const ResourceName& resource) {
  return {Objection::Why::unanswered,
          "a request to resource " + kit::in_quotes(resource.str()) +
              " was forwarded and its answer is missing, so it may still take effect; nothing "
              "passes until this is cleared",
          {}};
}

namespace {

Objection stopping_objection() {
  return {Objection::Why::stopping, "the gate is stopping", {}};
}

}  // namespace

Turns::Turns(const ResourceStates& states, Write write, TurnOptions options)
    : write_(std::move(write)), options_(options) {
  for (const auto& [name, state] : states) {
    auto resource = std::make_unique<Resource>(name);
    resource->state = state;
    resource->unanswered = state.open;
    if (state.open) ++unanswered_;
    resources_.emplace(name.str(), std::move(resource));
  }
}

Turns::~Turns() = default;

Turns::Resource* Turns::find_or_add(const ResourceName& name) {
  const auto found = resources_.find(name.str());
  if (found != resources_.end()) return found->second.get();
  if (resources_.size() >= options_.max_resources) return nullptr;
  return resources_.emplace(name.str(), std::make_unique<Resource>(name)).first->second.get();
}

void Turns::save(Resource& resource) {
  resource.version = write_(resource.name, resource.state);
  syncing_.emplace_back(resource.version, &resource);
}

Turns::Visit* Turns::enter(Ticket ticket, Tell tell) {
  if (stopping_) {
    tell(stopping_objection());
    return nullptr;
  }
  Resource* const found = find_or_add(ticket.resource);
  if (found == nullptr) {
    tell(Objection{Objection::Why::too_many,
                   "the gate remembers " + std::to_string(resources_.size()) +
                       " resources already, and may not forget one; raise --max-resources",
                   {}});
    return nullptr;
  }
  Resource& resource = *found;
  auto admitted = admit(resource.state, ticket);
  if (auto* objection = std::get_if<Objection>(&admitted)) {
    if (objection->why == Objection::Why::sequence_missing) {
      tell(std::move(*objection));
      return nullptr;
    }
    resource.visits.push_back(
        std::make_unique<Visit>(resource, std::move(ticket), std::move(tell)));
    refuse(resource, *resource.visits.back(), std::move(*objection));
    return nullptr;
  }
  if (resource.unanswered) {
    tell(unanswered_objection(resource.name));
    return nullptr;
  }
  if (!resource.state.mark.is_held_by(ticket.attempt.token)) ++resource.generation;
  auto& after = std::get<ResourceState>(admitted);
  if (after != resource.state) {
    resource.state = std::move(after);
    save(resource);
  }
  auto visit = std::make_unique<Visit>(resource, std::move(ticket), std::move(tell));
  visit->generation = resource.generation;
  visit->needs = resource.version;
  Visit* const raw = visit.get();
  resource.visits.push_back(std::move(visit));
  look(resource);
  return raw;
}

// Refusals are counted on disk before they are told.
void Turns::refuse(Resource& resource, Visit& visit, Objection objection) {
  ++resource.state.refused;
  save(resource);
  visit.stage = Stage::refused;
  visit.objection = std::move(objection);
  visit.needs = resource.version;
}

bool Turns::may_go(const Resource& resource, const Visit& visit) const {
  if (visit.needs > durable_) return false;
  return std::none_of(resource.visits.begin(), resource.visits.end(), [&](const auto& other) {
    return other->writes() && other->stage != Stage::refused && other->order() < visit.order();
  });
}

// Tells every visit whose time has come.
void Turns::look(Resource& resource) {
  bool left_open = false;
  for (auto it = resource.visits.begin(); it != resource.visits.end();) {
    Visit& visit = **it;
    if (visit.stage == Stage::forwarded) {
      ++it;
      continue;
    }
    if (visit.stage == Stage::waiting && visit.generation != resource.generation) {
      // It was overtaken before it went; the rules say why.
      auto admitted = admit(resource.state, visit.ticket);
      auto* objection = std::get_if<Objection>(&admitted);
      if (objection != nullptr) refuse(resource, visit, std::move(*objection));
    }
    if (visit.stage == Stage::refused) {
      if (visit.needs > durable_) {
        ++it;
        continue;
      }
      left_open = left_open || visit.generation > 0;  // it had entered, and so noted it
      visit.tell(std::move(visit.objection));
      it = resource.visits.erase(it);
      continue;
    }
    if (visit.stage == Stage::waiting && resource.unanswered) {
      visit.tell(unanswered_objection(resource.name));
      it = resource.visits.erase(it);
      continue;
    }
    if (may_go(resource, visit)) {
      visit.stage = Stage::forwarded;
      ++on_their_way_;
      visit.tell(std::nullopt);
    }
    ++it;
  }
  if (left_open) close_when_quiet(resource, TurnClock::time_point::min());
}

void Turns::end(Visit* visit) {
  Resource& resource = visit->resource;
  if (visit->stage == Stage::forwarded) --on_their_way_;
  resource.visits.remove_if([&](const auto& one) { return one.get() == visit; });
}

void Turns::close_when_quiet(Resource& resource, TurnClock::time_point now) {
  if (!resource.state.open || resource.unanswered || resource.has_writes()) return;
  resource.quiet_from = now;
  quiet_.emplace_back(now + options_.close_after, &resource);
}

void Turns::answered(Visit* visit, TurnClock::time_point now) {
  Resource& resource = visit->resource;
  end(visit);
  close_when_quiet(resource, now);
  look(resource);
}

void Turns::missed(Visit* visit) {
  if (!visit->writes()) return withdrawn(visit);  // nothing can take effect
  Resource& resource = visit->resource;
  end(visit);
  ++resource.misses;
  if (!resource.unanswered) {
    resource.unanswered = true;
    ++unanswered_;
  }
  look(resource);
}

void Turns::withdrawn(Visit* visit) {
  answered(visit, TurnClock::time_point::min());
}

void Turns::durable(Version version) {
  durable_ = std::max(durable_, version);
  while (!syncing_.empty() && syncing_.front().first <= durable_) {
    Resource& resource = *syncing_.front().second;
    syncing_.pop_front();
    look(resource);
  }
}

void Turns::tick(TurnClock::time_point now) {
  while (!quiet_.empty() && quiet_.front().first <= now) {
    Resource& resource = *quiet_.front().second;
    const bool used_since = resource.quiet_from + options_.close_after > now;
    quiet_.pop_front();
    if (used_since || !resource.state.open || resource.unanswered || resource.has_writes())
      continue;
    resource.state.open = false;
    save(resource);
  }
}

void Turns::stop() {
  stopping_ = true;
  for (auto& [text, resource] : resources_) {
    resource->visits.remove_if([](const auto& visit) {
      if (visit->stage == Stage::forwarded) return false;
      visit->tell(stopping_objection());
      return true;
    });
  }
}

std::uint64_t Turns::misses(const ResourceName& resource) const {
  const auto found = resources_.find(resource.str());
  return found == resources_.end() ? 0 : found->second->misses;
}

Result<Version> Turns::clear(const ResourceName& resource) {
  const auto found = resources_.find(resource.str());
  if (found == resources_.end() || !found->second->unanswered) {
    return fail(ErrorCode::invalid, "no request to resource " + kit::in_quotes(resource.str()) +
                                        " is unanswered: there is nothing to clear");
  }
  Resource& it = *found->second;
  it.unanswered = false;
  --unanswered_;
  if (!it.has_writes()) {
    it.state.open = false;
    save(it);
  }
  return it.version;
}

Result<Version> Turns::adopt(const ResourceName& resource, const Lineage& lineage,
                             TokenNumber at_least) {
  Resource* const it = find_or_add(resource);
  if (it == nullptr) {
    return fail(ErrorCode::unavailable, "the gate remembers as many resources as it may");
  }
  auto after = TRY(fence::adopted(resource, it->state.mark, lineage, at_least));
  if (after == it->state.mark) return it->version;
  it->state.mark = std::move(after);
  ++it->generation;
  save(*it);
  look(*it);
  return it->version;
}

std::vector<ResourceName> Turns::unanswered() const {
  std::vector<ResourceName> names;
  for (const auto& [text, resource] : resources_) {
    if (resource->unanswered) names.push_back(resource->name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace leasehold::gate
