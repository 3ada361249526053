#include "store.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "kit/try.h"
#include "probe.h"

namespace leasehold::zookeeper {
namespace {

constexpr auto kFirstLook = std::chrono::milliseconds(200);
constexpr auto kNextLook = std::chrono::seconds(1);
constexpr auto kKeepUnused = std::chrono::seconds(60);
constexpr const char* kWhyNoModes =
    "the clients of kazoo's recipe look for __lock__ right before the number in a node's name, so "
    "that no mode can stand there; recipe=curator has them";
constexpr std::string_view kNobody = "no ZooKeeper server opened a session";

// The one that is opened first serves leases of the usual length and everything else.
Millis usual_session() {
  return session_for(Ttl::of(std::chrono::seconds(30)).value());
}

}  // namespace

StoreTraits zookeeper_traits(const Options& options) {
  return {.address = options.address,
          .guarantee = Guarantee::correctness,
          .why =
              "the token is the number of the transaction that created the holder's node, and "
              "an ensemble never gives a number twice",
          .instead = "",
          .queues = true,
          .keeps_after_release = false,
          .one_counter = true,
          .modes = options.recipe == Recipe::curator,
          .why_no_modes = kWhyNoModes};
}

ZookeeperStore::ZookeeperStore(Options options)
    : options_(std::move(options)),
      traits_(zookeeper_traits(options_)),
      lock_watches_({.session = [this] { return session_of(usual_session()); },
                     .folder = [this](const LockName& lock) { return folder_of(lock); },
                     .events = [this] { return closed() ? nullptr : events_.load(); }},
                    agenda_) {
  agenda_.add(BootClock::now() + kKeepUnused,
              [this](Agenda::Reason reason) { retire_unused(reason); });
}

struct ZookeeperStore::Visit {
  std::shared_ptr<Call<std::monostate>> call;
  Mutex mutex;
  std::string seen LEASEHOLD_GUARDED_BY(mutex);  // of the hosts
};

Status ZookeeperStore::connect(const CallContext& context) {
  auto visit = std::make_shared<Visit>();
  auto told = std::make_shared<std::promise<Result<std::monostate>>>();
  visit->call = begin<std::monostate>(
      context, [told](Result<std::monostate> result) { told->set_value(std::move(result)); });
  with_session(visit->call, [visit](const SessionPtr&) { visit->call->answer({}); });
  look_at_hosts(visit, BootClock::now() + kFirstLook);
  auto result = told->get_future().get();
  if (result) return {};
  Error error = std::move(result.error());
  MutexLock lock(visit->mutex);
  if (error.store_words.empty()) error.store_words = std::move(visit->seen);
  return fail(std::move(error));
}

// The library does not tell why it is not connected. It goes on trying, but who has just opened a
// store wants to know.
void ZookeeperStore::look_at_hosts(const std::shared_ptr<Visit>& visit, BootTime when) {
  chores_.add(when, [this, visit](Agenda::Reason reason) {
    if (reason == Agenda::Reason::closing || visit->call->over()) return;
    const HostStates states = states_of(options_.hosts, [&] { return visit->call->over(); });
    if (states.all_refuse) {
      return visit->call->refuse(Error(ErrorCode::unavailable, std::string(kNobody), states.words));
    }
    {
      MutexLock lock(visit->mutex);
      visit->seen = states.words;
    }
    look_at_hosts(visit, BootClock::now() + kNextLook);
  });
}

void ZookeeperStore::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  agenda_.close();  // answers every call
  chores_.close();
  std::vector<SessionPtr> closing;
  {
    MutexLock lock(sessions_mutex_);
    no_more_sessions_ = true;
    closing = std::exchange(retired_, {});
    for (auto& [timeout, kept] : sessions_) closing.push_back(std::move(kept.session));
    sessions_.clear();
  }
  // What nobody has released is not ours to end: it stays until its session expires.
  std::vector<SessionPtr> holding;
  {
    MutexLock lock(mutex_);
    for (const auto& [request, place] : places_) {
      if (place->granted && !place->leaving) holding.push_back(place->session);
    }
  }
  for (const SessionPtr& it : closing) {
    if (std::find(holding.begin(), holding.end(), it) != holding.end()) it->abandon();
    it->close();
  }
}

bool ZookeeperStore::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

// ---- sessions -------------------------------------------------------------------------------

Result<ZookeeperStore::SessionPtr> ZookeeperStore::session_of(Millis timeout) {
  MutexLock lock(sessions_mutex_);
  if (no_more_sessions_) return fail(ErrorCode::unavailable, "the client is being closed");
  const auto found = sessions_.find(timeout);
  if (found != sessions_.end()) {
    found->second.used = BootClock::now();
    return found->second.session;
  }
  auto opened = Session::open(options_, timeout, agenda_, chores_, *this);
  sessions_.emplace(timeout, Kept{opened, BootClock::now()});
  return opened;
}

void ZookeeperStore::with_session(const std::shared_ptr<AnyCall>& call,
                                  std::function<void(const SessionPtr&)> then) {
  auto session = session_of(usual_session());
  if (!session) return call->refuse(std::move(session.error()));
  (*session)->when_ready([call, session = *session, then = std::move(then)](const Status& status) {
    if (call->over()) return;
    if (!status) return call->refuse(status.error());
    then(session);
  });
}

void ZookeeperStore::session_ready(const SessionPtr& session) {
  std::vector<PlacePtr> leaving;
  {
    MutexLock lock(mutex_);
    for (const auto& [request, place] : places_) {
      if (place->session == session && place->leaving) leaving.push_back(place);
    }
  }
  for (const PlacePtr& it : leaving) {
    take_turn(it, [this](Turn turn) { clean(std::make_shared<Turn>(std::move(turn))); });
  }
}

void ZookeeperStore::session_over(const SessionPtr& session) {
  std::vector<RequestId> held;
  std::vector<RequestId> waiting;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    quiet_.over(session.get());
    for (auto it = places_.begin(); it != places_.end();) {
      Place& place = *it->second;
      if (place.session != session) {
        ++it;
        continue;
      }
      (place.granted ? held : waiting).push_back(place.request);
      place.clear();
      it = place.occupied ? std::next(it) : places_.erase(it);
    }
  }
  retire(session);
  lock_watches_.session_over(session);
  for (const RequestId& it : held) tell_ended(it);
  for (const RequestId& it : waiting) tell_nudged(it);
}

void ZookeeperStore::session_broken(const Session& session) {
  MutexLock lock(mutex_);
  quiet_.broken(&session);
}

void ZookeeperStore::path_touched(const Session& session, const std::string& path) {
  MutexLock lock(mutex_);
  quiet_.touched(&session, path);
}

// A session cannot be closed on its own thread, and to close it may take seconds.
void ZookeeperStore::retire(const SessionPtr& session) {
  {
    MutexLock lock(sessions_mutex_);
    std::erase_if(sessions_, [&](const auto& it) { return it.second.session == session; });
    retired_.push_back(session);
  }
  chores_.add(BootClock::now(), [this](Agenda::Reason reason) {
    if (reason == Agenda::Reason::closing) return;
    std::vector<SessionPtr> closing;
    {
      MutexLock lock(sessions_mutex_);
      closing.swap(retired_);
    }
    for (const SessionPtr& it : closing) it->close();
  });
}

void ZookeeperStore::retire_unused(Agenda::Reason reason) {
  if (reason == Agenda::Reason::closing) return;
  std::vector<SessionPtr> unused;
  {
    MutexLock lock(sessions_mutex_);
    MutexLock places_lock(mutex_);
    const BootTime now = BootClock::now();
    for (const auto& [timeout, kept] : sessions_) {
      if (timeout == usual_session() || now - kept.used < std::max<Millis>(kKeepUnused, timeout)) {
        continue;
      }
      const bool used = std::any_of(
          places_.begin(), places_.end(),
          [&session = kept.session](const auto& it) { return it.second->session == session; });
      if (!used) unused.push_back(kept.session);
    }
  }
  for (const SessionPtr& it : unused) retire(it);
  agenda_.add(BootClock::now() + kKeepUnused, [this](Agenda::Reason why) { retire_unused(why); });
}

// The next permit is not told of everybody who comes: it goes on watching, and is told when it
// fits.
void ZookeeperStore::node_touched(const RequestId& watching) {
  if (lock_watches_.touched(watching)) return;
  SessionPtr session;
  std::string folder;
  std::string mine;
  {
    MutexLock lock(mutex_);
    const auto found = places_.find(watching);
    if (found != places_.end() && found->second->watches_folder) {
      session = found->second->session;
      folder = found->second->folder;
      mine = name_in(found->second->path);
    }
  }
  if (!session) return tell_nudged(watching);
  session->tell_of(folder, watching);
  list_queue(
      session, folder, true, [this, watching, mine](int rc, const auto& names, const NodeStat&) {
        const Queue queue(names);
        const auto place = queue.place_of(mine);
        const bool waits_on = outcome_of(rc) == Outcome::done && place && !queue.fits(*place);
        if (!waits_on) tell_nudged(watching);
      });
}

void ZookeeperStore::tell_ended(const RequestId& request) {
  StoreEvents* events = events_;
  if (events != nullptr && !closed()) events->ended(request);
}

void ZookeeperStore::tell_nudged(const RequestId& request) {
  StoreEvents* events = events_;
  if (events != nullptr && !closed()) events->nudged(request);
}

// ---- places ---------------------------------------------------------------------------------

void ZookeeperStore::take_turn_for(const AcquireCall& call, std::function<void(Turn)> work) {
  PlacePtr place;
  {
    MutexLock lock(mutex_);
    PlacePtr& kept = places_[call.request];
    if (!kept) kept = std::make_shared<Place>(call.lock, call.request, folder_of(call.lock));
    place = kept;
    if (place->occupied) {
      place->turns.push_back([this, place, work = std::move(work)] { work(Turn(*this, place)); });
      return;
    }
    place->occupied = true;
  }
  work(Turn(*this, place));
}

PlacePtr ZookeeperStore::find(const RequestId& request) const {
  MutexLock lock(mutex_);
  const auto found = places_.find(request);
  return found == places_.end() ? nullptr : found->second;
}

void ZookeeperStore::take_turn(const PlacePtr& place, std::function<void(Turn)> work) {
  {
    MutexLock lock(mutex_);
    if (place->occupied) {
      place->turns.push_back([this, place, work = std::move(work)] { work(Turn(*this, place)); });
      return;
    }
    place->occupied = true;
  }
  work(Turn(*this, place));
}

void ZookeeperStore::end_turn(const PlacePtr& place) {
  std::function<void()> next;
  {
    MutexLock lock(mutex_);
    if (!place->turns.empty()) {
      next = std::move(place->turns.front());
      place->turns.pop_front();
    } else {
      place->occupied = false;
      if (place->node != Place::Node::none) return;
      if (place->timer) agenda_.cancel(*place->timer);
      const auto found = places_.find(place->request);
      if (found != places_.end() && found->second == place) places_.erase(found);
    }
  }
  if (next) next();
}

// ---- opening --------------------------------------------------------------------------------

Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening) {
  auto options = TRY(Options::of(url));
  auto store = std::make_unique<ZookeeperStore>(std::move(options));
  TRY(store->connect(opening.begin()));
  return store;
}

}  // namespace leasehold::zookeeper
