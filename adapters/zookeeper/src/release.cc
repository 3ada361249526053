// Giving a place up: asked to, because its time is over, or because an operator says so.
#include <algorithm>
#include <chrono>

#include "store.h"

namespace leasehold::zookeeper {
namespace {

constexpr auto kTryAgain = std::chrono::seconds(1);

Error not_removed(int rc) {
  if (outcome_of(rc) == Outcome::lost) {
    return Error(ErrorCode::outcome_unknown, "the connection broke while the node was removed",
                 words_of(rc));
  }
  return Error(ErrorCode::unavailable, "the server does not let this client remove the node",
               words_of(rc));
}

}  // namespace

struct ZookeeperStore::Leave {
  std::shared_ptr<Call<ReleaseReply>> call;
  LockName lock;
  RequestId request;
  bool holder_only = false;  // not one that waits
  PlacePtr place = {};
  Turn turn = {};

  std::optional<std::string> find_in(const std::vector<std::string>& names,
                                     const Slots& slots) const {
    const Queue queue(names);
    const std::vector<Child> children = in_order(names);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const Child& child = children[i];
      const bool meant = child.request == request || stay_of(child.name) == request;
      if (meant && (!holder_only || queue.holds(i, slots))) return child.name;
    }
    return std::nullopt;
  }
};

void ZookeeperStore::release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) {
  auto begun = begin<ReleaseReply>(context, std::move(done));
  if (begun->over()) return;
  auto it = std::make_shared<Leave>(Leave{std::move(begun), std::move(call.lock), call.request});
  it->place = find(it->request);
  if (!it->place) return search_and_remove(it);
  take_turn(it->place, [this, it](Turn turn) {
    it->turn = std::move(turn);
    leave(it);
  });
}

void ZookeeperStore::leave(const std::shared_ptr<Leave>& it) {
  SessionPtr session;
  if (!it->call->over()) {
    MutexLock lock(mutex_);
    session = it->place->session;
  }
  if (!session) {
    it->turn.end();
    return it->call->answer(ReleaseReply::not_held);
  }
  session->when_ready([this, it, session](const Status& status) {
    if (it->call->over()) return it->turn.end();
    if (!status) {  // the node went with the session
      it->turn.end();
      return it->call->answer(ReleaseReply::not_held);
    }
    bool expired = false;
    {
      MutexLock lock(mutex_);
      it->place->leaving = true;
      expired = it->place->expired;
    }
    it->call->sent();
    remove_node(it->place, session, [it, expired](int rc) {
      it->turn.end();
      switch (outcome_of(rc)) {
        case Outcome::done:
          return it->call->answer(expired ? ReleaseReply::not_held : ReleaseReply::released);
        case Outcome::no_node:
        case Outcome::over:
          return it->call->answer(ReleaseReply::not_held);
        default:
          return it->call->refuse(not_removed(rc));
      }
    });
  });
}

void ZookeeperStore::force_release(LockName lock, RequestId seen, CallContext context,
                                   Completion<ReleaseReply> done) {
  auto begun = begin<ReleaseReply>(context, std::move(done));
  if (begun->over()) return;
  auto it = std::make_shared<Leave>(Leave{std::move(begun), std::move(lock), seen, true});
  search_and_remove(it);
}

// The path names one acquisition and no other: the removal cannot hit the next holder.
void ZookeeperStore::search_and_remove(const std::shared_ptr<Leave>& it) {
  with_session(it->call, [this, it](const SessionPtr& session) {
    const std::string folder = folder_of(it->lock);
    auto slots = std::make_shared<Slots>();
    session->server().sync(folder, [](int) {});
    if (it->holder_only) {
      session->server().get(folder, false, [slots](int, const std::string& data, const NodeStat&) {
        *slots = Slots::parse(data).value_or(Slots());
      });
    }
    list_queue(session, folder, false,
               [it, session, folder, slots](int rc, const auto& names, const NodeStat&) {
                 const Outcome outcome = outcome_of(rc);
                 if (outcome == Outcome::no_node) return it->call->answer(ReleaseReply::not_held);
                 if (outcome != Outcome::done) {
                   return it->call->refuse(
                       Error(ErrorCode::unavailable, "the queue could not be read", words_of(rc)));
                 }
                 const auto found = it->find_in(names, *slots);
                 if (!found) return it->call->answer(ReleaseReply::not_held);
                 it->call->sent();
                 session->server().remove(folder + "/" + *found, [it](int removed) {
                   const Outcome result = outcome_of(removed);
                   if (result == Outcome::done) return it->call->answer(ReleaseReply::released);
                   if (result == Outcome::no_node) return it->call->answer(ReleaseReply::not_held);
                   it->call->refuse(not_removed(removed));
                 });
               });
  });
}

// ---- the node itself ------------------------------------------------------------------------

void ZookeeperStore::remove_node(const PlacePtr& place, const SessionPtr& session,
                                 RemovedPtr done) {
  std::string path;
  {
    MutexLock lock(mutex_);
    if (place->node == Place::Node::standing) path = place->path;
  }
  auto removed = [this, place, session, done = std::move(done)](int rc) {
    node_removed(place, session, rc);
    done(rc);
  };
  if (!path.empty()) return session->ride().remove(path, std::move(removed));
  session->server().sync(place->folder, [](int) {});
  session->server().children(
      place->folder, [this, place, session, removed](int rc, const auto& names, const NodeStat&) {
        const std::string prefix = request_prefix(place->request, options_.recipe);
        const auto mine = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
          return name.starts_with(prefix);
        });
        if (outcome_of(rc) != Outcome::done) return removed(rc);
        if (mine == names.end()) return removed(kNoNode);
        session->server().remove(place->folder + "/" + *mine, removed);
      });
}

void ZookeeperStore::node_removed(const PlacePtr& place, const SessionPtr& session, int rc) {
  const Outcome outcome = outcome_of(rc);
  if (outcome == Outcome::lost || outcome == Outcome::over) return;  // an event tells more
  MutexLock lock(mutex_);
  if (place->session != session) return;
  if (outcome == Outcome::done || outcome == Outcome::no_node) {
    if (const auto number = sequence_in(name_in(place->path))) {
      quiet_.gone(session.get(), place->folder, *number);
    }
    return place->clear();
  }
  place->leaving = place->expired;  // refused: it stays as it was
}

// ---- at the end of its time -----------------------------------------------------------------

// The library keeps a session alive by itself, so what nobody renews has to be ended here.
void ZookeeperStore::look_again(const PlacePtr& place, BootTime when) {
  if (place->timer) agenda_.cancel(*place->timer);
  place->timer =
      agenda_.add(when, [this, place](Agenda::Reason reason) { look_at_expiry(place, reason); });
}

void ZookeeperStore::look_at_expiry(const PlacePtr& place, Agenda::Reason reason) {
  if (reason == Agenda::Reason::closing) return;
  {
    MutexLock lock(mutex_);
    if (place->node == Place::Node::none) return;
    const BootTime now = BootClock::now();
    const bool over = now >= place->expires;
    look_again(place, over ? now + kTryAgain : place->expires);
    if (!over) return;
    if (!place->leaving) place->expired = true;
    place->leaving = true;
  }
  take_turn(place, [this](Turn turn) { clean(std::make_shared<Turn>(std::move(turn))); });
}

void ZookeeperStore::clean(const std::shared_ptr<Turn>& turn) {
  const PlacePtr place = turn->place();
  SessionPtr session;
  {
    MutexLock lock(mutex_);
    if (place->leaving) session = place->session;
  }
  if (!session || !session->ready()) return;  // the next connection does it
  remove_node(place, session, [turn](int) { turn->end(); });
}

}  // namespace leasehold::zookeeper
