// Taking a place in the queue, and finding out whether it is the first.
#include <algorithm>

#include "queue.h"
#include "store.h"
#include "store_base/mode_conflict.h"

namespace leasehold::zookeeper {
namespace {

constexpr int kMostRounds = 8;
constexpr Millis kLively{1000};
constexpr std::size_t kMostFolders = 10'000;

Millis recheck_after(const std::shared_ptr<Session>& session, bool queued_before) {
  const Millis calm = session->lasts() / 3;
  return queued_before ? calm : std::min(calm, kLively);
}

// Into `label`, before what is asked of the server next is answered.
void read_label(
    const std::shared_ptr<Session>& session, const std::string& folder, const std::string& name,
    const std::shared_ptr<std::string>& label, const std::function<void()>& then = [] {}) {
  session->server().get(folder + "/" + name, false,
                        [label, name, then](int rc, const std::string& data, const NodeStat&) {
                          if (outcome_of(rc) == Outcome::done) *label = who(name, data);
                          then();
                        });
}

Error slots_not_read(const std::string& folder, int rc) {
  if (outcome_of(rc) == Outcome::done) {
    return Error(ErrorCode::unavailable,
                 "the data of " + folder + " is not as this version of Leasehold writes it");
  }
  return Error(ErrorCode::unavailable, "the slots of the lock could not be read", words_of(rc));
}

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

  // Of a permit: the lock's folder, as it was read before the queue.
  int folder_rc = 0;
  std::string folder_data = {};
  std::int32_t folder_version = 0;
  bool watched_folder = false;  // by the last look

  std::string label(const SessionPtr& session) const {
    return Label{session->timeout().count(), what.owner.str(), what.note.str()}.str();
  }
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
// Where the number of the node may say as much as the list, that is left out.
void ZookeeperStore::stand(const AskPtr& it, const SessionPtr& session) {
  it->call->sent();
  const BootTime expires = it->began + session->lasts();
  bool folder_is_known = false;
  auto plan = QuietFolders::Plan::list;
  {
    MutexLock lock(mutex_);
    Place& place = *it->place;
    place.clear();
    place.session = session;
    place.node = Place::Node::unknown;
    place.expires = expires;
    look_again(it->place, expires);
    folder_is_known = folders_.contains(place.folder);
    if (!it->what.mode.is_permit()) plan = quiet_.plan(session.get(), place.folder);
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
  const bool by_number = plan == QuietFolders::Plan::go_by_number;
  auto stands = std::make_shared<bool>(false);
  const BootTime asked = BootClock::now();
  const auto told = [this, it, session, folder, stands, asked, by_number](
                        int rc, const std::string& path, const NodeStat& stat) {
    *stands = outcome_of(rc) == Outcome::done;
    if (*stands) session->confirmed(asked);
    stood(it, session, rc, *folder, path, stat);
    if (!*stands || !by_number) return;
    if (is_alone_by_number(it, session)) return grant(it, session);
    look(it, session);
  };
  const auto sent = [this, it, session, stands, plan, by_number] {
    if (by_number) return;
    if (plan == QuietFolders::Plan::watch_and_list) watch_quiet_folder(it, session);
    read_queue(it, session,
               [this, it, session, stands](int rc, const auto& names, const NodeStat& at) {
                 if (*stands) judge(it, session, rc, names, at);
               });
  };
  const std::string path =
      it->place->folder + "/" + node_prefix(it->what.request, options_.recipe, it->what.mode);
  session->ride().create(
      {it->place->folder, path, it->label(session), [it] { return !it->call->over(); }}, told,
      sent);
}

void ZookeeperStore::watch_quiet_folder(const AskPtr& it, const SessionPtr& session) {
  session->server().exists(it->place->folder, true,
                           [this, it, session](int rc, const std::string&, const NodeStat&) {
                             if (outcome_of(rc) != Outcome::done) return;
                             MutexLock lock(mutex_);
                             quiet_.watched(session.get(), it->place->folder);
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

bool ZookeeperStore::is_alone_by_number(const AskPtr& it, const SessionPtr& session) {
  MutexLock lock(mutex_);
  Place& place = *it->place;
  const auto number = sequence_in(name_in(place.path));
  const bool is_alone =
      place.session == session && number && quiet_.is_alone(session.get(), place.folder, *number);
  if (is_alone) place.admitted = true;
  return is_alone;
}

void ZookeeperStore::note_company(const AskPtr& it, const SessionPtr& session,
                                  const std::vector<std::string>& names) {
  MutexLock lock(mutex_);
  const Place& place = *it->place;
  const auto number = sequence_in(name_in(place.path));
  const bool is_alone = names.size() == 1 && number && names.front() == name_in(place.path);
  if (place.session != session) return;
  if (is_alone) return quiet_.found_alone(session.get(), place.folder, *number);
  quiet_.found_others(place.folder);
}

void ZookeeperStore::remember_folder(const std::string& folder) {
  if (folders_.size() >= kMostFolders) folders_.clear();
  folders_.insert(folder);
}

// A server that is behind shows those before who have left, and they are watched there: who is
// first at any server is first for good.
void ZookeeperStore::look(const AskPtr& it, const SessionPtr& session) {
  read_queue(it, session, [this, it, session](int rc, const auto& names, const NodeStat& at) {
    judge(it, session, rc, names, at);
  });
}

// With the slots, of which judge() sees whether they were written in between.
void ZookeeperStore::read_queue(const AskPtr& it, const SessionPtr& session,
                                Connection::Listed done) {
  const std::string& folder = it->place->folder;
  bool watches = false;
  {
    MutexLock lock(mutex_);
    watches = it->watched_folder = it->place->watches_folder;
  }
  if (watches) session->tell_of(folder, it->what.request);
  if (it->what.mode.is_permit()) {
    session->server().get(folder, false, [it](int rc, std::string data, const NodeStat& stat) {
      it->folder_rc = rc;
      it->folder_data = std::move(data);
      it->folder_version = stat.version;
    });
  }
  list_queue(session, folder, watches, std::move(done));
}

// The answer to the create was lost: the request id in the node's name tells whether it was done.
void ZookeeperStore::recognise(const AskPtr& it, const SessionPtr& session) {
  session->server().sync(it->place->folder, [](int) {});
  session->server().children(it->place->folder, [this, it, session](int rc, const auto& names,
                                                                    const NodeStat&) {
    const Outcome outcome = outcome_of(rc);
    if (outcome == Outcome::over) return ask(it);
    if (outcome != Outcome::done && outcome != Outcome::no_node) {
      return fail_ask(it, rc, "looking for the place in the queue");
    }
    const std::string prefix = request_prefix(it->what.request, options_.recipe);
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
                           const std::vector<std::string>& names, const NodeStat& at) {
  const Outcome outcome = outcome_of(rc);
  if (outcome == Outcome::over) return ask(it);
  if (outcome != Outcome::done && outcome != Outcome::no_node) {
    return fail_ask(it, rc, "reading the queue");
  }
  note_company(it, session, names);
  std::string mine;
  bool granted = false;
  bool admitted = false;
  {
    MutexLock lock(mutex_);
    if (it->place->session == session) mine = name_in(it->place->path);
    granted = it->place->granted;  // a lease of Curator's may have come since
    admitted = std::exchange(it->place->admitted, true);
  }
  const Queue queue(names);
  const auto place = queue.place_of(mine);
  if (!place) return ask_anew(it);
  if (granted) return grant(it, session);
  const Mode used = queue.use_before(*place).value_or(it->what.mode);
  if (!admitted && !it->what.mode.mixes_with(used)) {
    return turn_away(
        it, session,
        mode_conflict(it->what.lock, it->what.mode, used, queue.set_permits().has_value()));
  }
  const auto slots = Slots::parse(it->folder_data);
  if (it->what.mode.is_permit() && !(slots && outcome_of(it->folder_rc) == Outcome::done)) {
    return turn_away(it, session, slots_not_read(it->place->folder, it->folder_rc));
  }
  const bool written_between = it->what.mode.is_permit() && at.version != it->folder_version;
  if (written_between) return it->call->over() ? it->turn.end() : look(it, session);
  if (queue.fits(*place)) {
    if (it->what.mode.is_permit()) return take_slot(it, session, queue, *place, *slots);
    return grant(it, session);
  }
  const std::string first(queue.name(0));
  if (!it->what.queue) return step_back(it, session, first);
  const auto before = queue.waits_for(*place, *slots);
  if (!before) return wait_for_anybody(it, session, first);
  stop_watching_folder(it, session);
  wait_for(it, session, std::string(queue.name(*before)), first, queue.has_one_permit());
}

// Whoever looks first gives a slot to each who has come before and fits, so that no later one has a
// slot, and a larger token at the slot's fence, before an earlier one. The change of the own node
// wakes the one behind it.
void ZookeeperStore::take_slot(const AskPtr& it, const SessionPtr& session, const Queue& queue,
                               std::size_t place, const Slots& slots) {
  stop_watching_folder(it, session);
  std::string path;
  {
    MutexLock lock(mutex_);
    if (it->place->session == session) path = it->place->path;
  }
  if (path.empty()) return ask(it);
  const std::int64_t number = queue.number(place);
  const auto has = [this, it, session](std::optional<Slot> slot) {
    {
      MutexLock lock(mutex_);
      it->place->slot = slot;
    }
    grant(it, session);
  };
  if (const auto slot = slots.of(number)) {
    session->server().set(path, it->label(session), [](int) {});
    return has(slot);
  }
  if (queue.has_one_permit()) return has(Slot{0});
  const Slots next = queue.with_slots_up_to(place, slots);
  const BootTime asked = BootClock::now();
  session->server().transact(
      {{Step::Kind::set, path, it->label(session)},
       {Step::Kind::set, it->place->folder, next.str(), it->folder_version}},
      [this, it, session, asked, has, slot = next.of(number)](int rc, const std::vector<Stepped>&) {
        const Outcome outcome = outcome_of(rc);
        if (rc == kBadVersion) return it->call->over() ? it->turn.end() : look(it, session);
        if (outcome == Outcome::over) return ask(it);
        if (outcome == Outcome::no_node) return ask_anew(it);
        if (outcome == Outcome::lost) return fail_ask(it, rc, "taking a slot");
        if (outcome != Outcome::done) {
          return turn_away(
              it, session,
              Error(ErrorCode::unavailable,
                    "the server does not let this client write slots down in " + it->place->folder,
                    words_of(rc)));
        }
        session->confirmed(asked);
        it->confirmed = true;
        has(slot);
      });
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
      granted = Granted{*token, *place.lineage, place.ttl, fresh, place.slot};
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
                             [this, it, session, asked](int rc, const std::vector<Stepped>&) {
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

// Watches only one, so that one release wakes one. Who is first is only for messages: in a lively
// queue nobody waits long enough to be told.
void ZookeeperStore::wait_for(const AskPtr& it, const SessionPtr& session,
                              const std::string& before, const std::string& first,
                              bool one_permit) {
  auto ahead = std::make_shared<std::string>();
  const std::string folder = it->place->folder + "/";
  const bool tells_first = tells_who_is_first(it) || before == first;
  if (tells_first && before != first) read_label(session, it->place->folder, first, ahead);
  const Millis recheck = recheck_after(session, tells_first);
  const bool behind_a_permit = it->what.mode.is_permit() && mode_of(before).is_permit();
  const bool until_granted = behind_a_permit && !one_permit;
  const bool until_there_are_more = behind_a_permit && one_permit;
  const auto watching = [this, it, session, ahead, recheck, until_granted, until_there_are_more,
                         path = folder + before](int rc, const NodeStat& stat) {
    const Outcome outcome = outcome_of(rc);
    const bool granted_since = until_granted && stat.version > 0;
    if (outcome != Outcome::done || granted_since) session->tell_no_more(path, it->what.request);
    if (outcome == Outcome::no_node) return look(it, session);  // just gone
    if (outcome == Outcome::over) return ask(it);
    if (outcome != Outcome::done) return fail_ask(it, rc, "watching the one before");
    if (granted_since) return ask(it);
    if (!until_there_are_more) return tell_queued(it, recheck, *ahead);
    // The node before is written to when they are set: perhaps just before it was watched.
    session->server().exists(
        it->place->folder, false,
        [this, it, recheck, ahead](int, const std::string&, const NodeStat& at) {
          if (at.version != it->folder_version) return ask(it);
          tell_queued(it, recheck, *ahead);
        });
  };
  session->tell_of(folder + before, it->what.request);
  session->server().get(
      folder + before, true,
      [session, ahead, tells_first, before, path = folder + before, watching](
          int rc, const std::string& data, const NodeStat& stat) {
        if (outcome_of(rc) != Outcome::refused) {
          if (tells_first && ahead->empty()) *ahead = who(before, data);
          return watching(rc, stat);
        }
        // Another user's node cannot be read, but everybody may see whether it is there.
        session->server().exists(
            path, true,
            [watching](int seen, const std::string&, const NodeStat& at) { watching(seen, at); });
      });
}

// The next permit watches all who come and go: each who goes lets it in. Only one does so.
void ZookeeperStore::wait_for_anybody(const AskPtr& it, const SessionPtr& session,
                                      const std::string& first) {
  bool watched = false;
  {
    MutexLock lock(mutex_);
    watched = it->watched_folder;
    it->place->watches_folder = true;
  }
  if (!watched) return look(it, session);
  const bool tells_first = tells_who_is_first(it);
  const Millis recheck = recheck_after(session, tells_first);
  auto ahead = std::make_shared<std::string>();
  if (!tells_first) return tell_queued(it, recheck, *ahead);
  read_label(session, it->place->folder, first, ahead,
             [this, it, recheck, ahead] { tell_queued(it, recheck, *ahead); });
}

void ZookeeperStore::tell_queued(const AskPtr& it, Millis recheck, const std::string& ahead) {
  it->turn.end();
  it->call->answer(Queued{recheck, ahead});
}

void ZookeeperStore::stop_watching_folder(const AskPtr& it, const SessionPtr& session) {
  bool watched = false;
  {
    MutexLock lock(mutex_);
    it->place->watches_folder = false;
    watched = std::exchange(it->watched_folder, false);
  }
  if (watched) session->tell_no_more(it->place->folder, it->what.request);
}

bool ZookeeperStore::tells_who_is_first(const AskPtr& it) {
  MutexLock lock(mutex_);
  return std::exchange(it->place->queued_before, true);
}

// A try that may not wait: those behind must not wait for it either.
void ZookeeperStore::step_back(const AskPtr& it, const SessionPtr& session,
                               const std::string& first) {
  auto ahead = std::make_shared<std::string>();
  read_label(session, it->place->folder, first, ahead);
  withdraw(it, session, [it, ahead] { it->call->answer(Busy{*ahead}); });
}

void ZookeeperStore::turn_away(const AskPtr& it, const SessionPtr& session, Error why) {
  withdraw(it, session, [it, why = std::move(why)] { it->call->refuse(why); });
}

void ZookeeperStore::withdraw(const AskPtr& it, const SessionPtr& session,
                              std::function<void()> then) {
  stop_watching_folder(it, session);
  {
    MutexLock lock(mutex_);
    it->place->leaving = true;
  }
  remove_node(it->place, session, [it, then = std::move(then)](int) {
    it->turn.end();  // if it was not removed, it will be
    then();
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
