// Taking a place in the queue, and finding out whether it is the first.
#include <algorithm>

#include "store.h"

namespace leasehold::zookeeper {
namespace {

constexpr int kMostRounds = 8;
constexpr Millis kLively{1000};
constexpr std::size_t kMostFolders = 10'000;

}  // namespace

struct ZookeeperStore::Ask {
  std::shared_ptr<Call<AcquireReply>> call;
  AcquireCall what;
  BootTime began;
  PlacePtr place = {};
  Turn turn = {};
  int rounds = 0;
  bool confirmed = false;
  bool made_earlier = false;  // the node, by a call whose answer was lost
};

void ZookeeperStore::acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) {
  auto begun = begin<AcquireReply>(context, std::move(done));
  if (begun->over()) return;
  auto it = std::make_shared<Ask>(Ask{std::move(begun), std::move(call), BootClock::now()});
  take_turn_for(it->what, [this, it](Turn turn) {
    it->place = turn.place();
    it->turn = std::move(turn);
    ask(it);
  });
}

// Only in the place's turn, as everything below.
void ZookeeperStore::ask(const AskPtr& it) {
  if (it->call->over()) return it->turn.end();
  if (++it->rounds > kMostRounds) {
    it->call->refuse(
        Error(ErrorCode::unavailable, "the place in the queue is lost again and again"));
    return it->turn.end();
  }
  SessionPtr session;
  {
    MutexLock lock(mutex_);
    Place& place = *it->place;
    session = place.session;
    if (place.node != Place::Node::none) it->call->sent();
    const bool still_waits =
        place.node == Place::Node::standing && !place.granted && !place.leaving;
    if (still_waits) place.expires = std::max(place.expires, it->began + session->lasts());
  }
  if (!session) {
    auto opened = session_of(session_for(it->what.ttl));
    if (!opened) {
      it->call->refuse(std::move(opened.error()));
      return it->turn.end();
    }
    session = std::move(*opened);
  }
  session->when_ready([this, it, session](const Status& status) {
    if (it->call->over()) return it->turn.end();
    if (status) return ask_in(it, session);
    it->call->refuse(status.error());
    it->turn.end();
  });
}

void ZookeeperStore::ask_in(const AskPtr& it, const SessionPtr& session) {
  Place::Node node = Place::Node::none;
  bool leaving = false;
  {
    MutexLock lock(mutex_);
    Place& place = *it->place;
    const bool over = place.granted && BootClock::now() >= place.expires;
    if (over && !place.leaving) place.expired = place.leaving = true;
    node = place.node;
    leaving = place.leaving;
  }
  if (node == Place::Node::none) return stand(it, session);
  if (leaving) {
    return remove_node(it->place, session, [this, it](int rc) {
      const Outcome outcome = outcome_of(rc);
      const bool gone =
          outcome == Outcome::done || outcome == Outcome::no_node || outcome == Outcome::over;
      if (gone) return ask(it);
      fail_ask(it, rc, "removing what is left of an earlier grant");
    });
  }
  if (node == Place::Node::unknown) return recognise(it, session);
  look(it, session);
}

// All requests go out together. The server treats them in order, so the list has the new node.
void ZookeeperStore::stand(const AskPtr& it, const SessionPtr& session) {
  it->call->sent();
  const BootTime expires = it->began + session->lasts();
  bool folder_is_known = false;
  {
    MutexLock lock(mutex_);
    Place& place = *it->place;
    place.clear();
    place.session = session;
    place.node = Place::Node::unknown;
    place.expires = expires;
    look_again(it->place, expires);
    folder_is_known = folders_.contains(place.folder);
  }
  // The server removes a container some time after its last child; kazoo's objects look for the
  // folder only once.
  const bool stays = options_.recipe == Recipe::kazoo;
  auto folder = std::make_shared<int>(kNoNode);
  if (!folder_is_known) {
    session->server().create(
        it->place->folder, "", stays ? NodeMode::persistent : NodeMode::container,
        [folder](int rc, const std::string&, const NodeStat&) { *folder = rc; });
  }
  const Label label{session->timeout().count(), it->what.owner.str()};
  auto stands = std::make_shared<bool>(false);
  const BootTime asked = BootClock::now();
  session->server().create(it->place->folder + "/" + node_prefix(it->what.request, options_.recipe),
                           label.str(), NodeMode::ephemeral_sequential,
                           [this, it, session, folder, stands, asked](
                               int rc, const std::string& path, const NodeStat& stat) {
                             *stands = outcome_of(rc) == Outcome::done;
                             if (*stands) session->confirmed(asked);
                             stood(it, session, rc, *folder, path, stat);
                           });
  list_queue(session, it->place->folder,
             [this, it, session, stands](int rc, const std::vector<std::string>& names) {
               if (*stands) judge(it, session, rc, names);
             });
}

void ZookeeperStore::stood(const AskPtr& it, const SessionPtr& session, int rc, int folder_rc,
                           const std::string& path, const NodeStat& stat) {
  const Outcome outcome = outcome_of(rc);
  {
    MutexLock lock(mutex_);
    Place& place = *it->place;
    if (outcome == Outcome::done) remember_folder(place.folder);
    if (outcome == Outcome::no_node) folders_.erase(place.folder);
    const bool same_session = place.session == session;
    if (same_session && outcome == Outcome::done) {
      place.node = Place::Node::standing;
      place.path = path;
      place.token = stat.created;
    } else if (same_session && outcome != Outcome::lost) {
      place.clear();
    }
  }
  switch (outcome) {
    case Outcome::done:
      return;  // the list comes next
    case Outcome::over:
      return ask(it);
    case Outcome::no_node:
      if (outcome_of(folder_rc) != Outcome::refused) return ask(it);  // removed in between
      return fail_ask(it, folder_rc, "making the folder of the lock");
    default:
      return fail_ask(it, rc, "asking for a place in the queue");
  }
}

void ZookeeperStore::remember_folder(const std::string& folder) {
  if (folders_.size() >= kMostFolders) folders_.clear();
  folders_.insert(folder);
}

// A server that is behind shows those before who have left, and they are watched there: who is
// first at any server is first for good.
void ZookeeperStore::look(const AskPtr& it, const SessionPtr& session) {
  list_queue(session, it->place->folder,
             [this, it, session](int rc, const std::vector<std::string>& names) {
               judge(it, session, rc, names);
             });
}

// The answer to the create was lost: the request id in the node's name tells whether it was done.
void ZookeeperStore::recognise(const AskPtr& it, const SessionPtr& session) {
  session->server().sync(it->place->folder, [](int) {});
  session->server().children(it->place->folder, [this, it, session](
                                                    int rc, const std::vector<std::string>& names) {
    const Outcome outcome = outcome_of(rc);
    if (outcome == Outcome::over) return ask(it);
    if (outcome != Outcome::done && outcome != Outcome::no_node) {
      return fail_ask(it, rc, "looking for the place in the queue");
    }
    const std::string prefix = node_prefix(it->what.request, options_.recipe);
    const auto mine = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return name.starts_with(prefix);
    });
    if (mine == names.end()) return ask_anew(it);
    const std::string path = it->place->folder + "/" + *mine;
    session->server().exists(
        path, false, [this, it, session, path](int seen, const std::string&, const NodeStat& stat) {
          if (outcome_of(seen) == Outcome::no_node) return ask_anew(it);
          if (outcome_of(seen) != Outcome::done) return fail_ask(it, seen, "reading the node");
          bool leftover = false;
          {
            MutexLock lock(mutex_);
            Place& place = *it->place;
            if (place.session == session) {
              place.node = Place::Node::standing;
              place.path = path;
              place.token = stat.created;
              // A node of another session would vanish with that one.
              leftover = stat.session != session->id();
              place.leaving = leftover;
              place.expires = std::max(place.expires, it->began + session->lasts());
            }
          }
          if (leftover) return ask(it);
          it->made_earlier = true;
          look(it, session);
        });
  });
}

void ZookeeperStore::judge(const AskPtr& it, const SessionPtr& session, int rc,
                           const std::vector<std::string>& names) {
  const Outcome outcome = outcome_of(rc);
  if (outcome == Outcome::over) return ask(it);
  if (outcome != Outcome::done && outcome != Outcome::no_node) {
    return fail_ask(it, rc, "reading the queue");
  }
  std::string mine;
  bool granted = false;
  {
    MutexLock lock(mutex_);
    if (it->place->session == session) mine = name_in(it->place->path);
    granted = it->place->granted;  // a lease of Curator's may have come since
  }
  const std::vector<std::string_view> ordered = names_in_order(names);
  const auto found = std::find(ordered.begin(), ordered.end(), mine);
  if (found == ordered.end()) return ask_anew(it);
  if (found == ordered.begin() || granted) return grant(it, session);
  const std::string first(ordered.front());
  if (it->what.queue) return queue(it, session, std::string(*std::prev(found)), first);
  step_back(it, session, first);
}

void ZookeeperStore::grant(const AskPtr& it, const SessionPtr& session) {
  const auto lineage = session->lineage();
  if (!lineage) {  // it is being changed right now
    return session->when_ready([this, it, session](const Status& status) {
      if (status) return grant(it, session);
      it->call->refuse(status.error());
      it->turn.end();
    });
  }
  const Millis whole = session->lasts();
  const Millis certain = std::min(whole, session->certain_from(it->began));
  bool again = false;
  {
    MutexLock lock(mutex_);
    again = it->place->granted;
  }
  if (!again && certain < whole && !std::exchange(it->confirmed, true)) {
    return confirm(it, session);
  }
  if (!again && certain < whole / 2) {
    it->turn.end();
    return it->call->refuse(Error(ErrorCode::outcome_unknown,
                                  "it was granted, but the server has not answered for so long "
                                  "that the session may be about to end"));
  }
  std::optional<Granted> granted;
  {
    MutexLock lock(mutex_);
    Place& place = *it->place;
    const auto token = TokenNumber::of(place.token);
    if (place.session == session && token) {
      const bool fresh = !place.granted && !it->made_earlier;
      if (!place.granted) {
        place.granted = true;
        place.lineage = lineage;
        place.ttl = certain;
        place.expires = it->began + certain;
      }
      granted = Granted{*token, *place.lineage, place.ttl, fresh};
    }
  }
  if (!granted) return ask(it);
  it->turn.end();
  it->call->answer(std::move(*granted));
}

// A read shows who is first, but not that the leader still counts on this session.
void ZookeeperStore::confirm(const AskPtr& it, const SessionPtr& session) {
  std::string path;
  {
    MutexLock lock(mutex_);
    if (it->place->session == session) path = it->place->path;
  }
  if (path.empty()) return ask(it);
  const BootTime asked = BootClock::now();
  session->server().transact({{Step::Kind::check, path}},
                             [this, it, session, asked](int rc, const std::vector<int>&) {
                               const Outcome outcome = outcome_of(rc);
                               if (outcome == Outcome::over) return ask(it);
                               if (outcome == Outcome::no_node) return ask_anew(it);
                               if (outcome != Outcome::done) {
                                 return fail_ask(it, rc, "confirming the grant");
                               }
                               session->confirmed(asked);
                               grant(it, session);
                             });
}

// Watches only the one before, so that one release wakes one. Who is first is only for messages: in
// a lively queue nobody waits long enough to be told.
void ZookeeperStore::queue(const AskPtr& it, const SessionPtr& session, const std::string& before,
                           const std::string& first) {
  auto ahead = std::make_shared<std::string>();
  const std::string folder = it->place->folder + "/";
  bool tells_first = false;
  {
    MutexLock lock(mutex_);
    tells_first = std::exchange(it->place->queued_before, true) || before == first;
  }
  if (tells_first && before != first) {
    session->server().get(folder + first, false,
                          [ahead, first](int rc, const std::string& data, const NodeStat&) {
                            if (outcome_of(rc) == Outcome::done) *ahead = who(first, data);
                          });
  }
  const Millis recheck =
      tells_first ? session->lasts() / 3 : std::min(session->lasts() / 3, kLively);
  const auto watching = [this, it, session, ahead, recheck, path = folder + before](int rc) {
    const Outcome outcome = outcome_of(rc);
    if (outcome != Outcome::done) session->tell_no_more(path, it->what.request);
    if (outcome == Outcome::no_node) return look(it, session);  // just gone
    if (outcome == Outcome::over) return ask(it);
    if (outcome != Outcome::done) return fail_ask(it, rc, "watching the one before");
    it->turn.end();
    it->call->answer(Queued{recheck, *ahead});
  };
  session->tell_of(folder + before, it->what.request);
  session->server().get(folder + before, true,
                        [session, ahead, tells_first, before, path = folder + before, watching](
                            int rc, const std::string& data, const NodeStat&) {
                          if (outcome_of(rc) != Outcome::refused) {
                            if (tells_first && ahead->empty()) *ahead = who(before, data);
                            return watching(rc);
                          }
                          // Another user's node cannot be read, but everybody may see whether it is
                          // there.
                          session->server().exists(path, true,
                                                   [watching](int seen, const std::string&,
                                                              const NodeStat&) { watching(seen); });
                        });
}

// A try that may not wait: those behind must not wait for it either.
void ZookeeperStore::step_back(const AskPtr& it, const SessionPtr& session,
                               const std::string& first) {
  {
    MutexLock lock(mutex_);
    it->place->leaving = true;
  }
  auto ahead = std::make_shared<std::string>();
  session->server().get(it->place->folder + "/" + first, false,
                        [ahead, first](int rc, const std::string& data, const NodeStat&) {
                          if (outcome_of(rc) == Outcome::done) *ahead = who(first, data);
                        });
  remove_node(it->place, session, [it, ahead](int) {
    it->turn.end();  // if it was not removed, it will be
    it->call->answer(Busy{*ahead});
  });
}

void ZookeeperStore::ask_anew(const AskPtr& it) {
  {
    MutexLock lock(mutex_);
    it->place->clear();
  }
  ask(it);
}

void ZookeeperStore::fail_ask(const AskPtr& it, int rc, const std::string& doing) {
  bool traces = false;
  {
    MutexLock lock(mutex_);
    traces = it->place->node != Place::Node::none;
  }
  it->turn.end();
  if (outcome_of(rc) == Outcome::lost) {
    return it->call->refuse(Error(traces ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
                                  "the connection broke while " + doing, words_of(rc)));
  }
  it->call->refuse(Error(traces ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
                         "the server refused it while " + doing, words_of(rc)));
}

}  // namespace leasehold::zookeeper
