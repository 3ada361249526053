// Renewal: a transaction that changes nothing, but needs the leader and its majority.
#include <algorithm>
#include <atomic>

#include "store.h"

namespace leasehold::zookeeper {
namespace {

// The server takes requests below one megabyte by default.
constexpr std::size_t kMostBytes = 256 * 1024;

}  // namespace

// One call, which may need several transactions.
struct ZookeeperStore::Renewal {
  std::shared_ptr<Call<std::vector<RenewReply>>> call;
  BootTime began;
  std::vector<PlacePtr> places;
  std::vector<RenewReply> replies;  // each written by one transaction only
  std::atomic<std::size_t> open = 1;

  void one_done() {
    if (--open == 0) call->answer(std::move(replies));
  }
};

void ZookeeperStore::renew(std::vector<RenewCall> calls, CallContext context,
                           Completion<std::vector<RenewReply>> done) {
  auto begun = begin<std::vector<RenewReply>>(context, std::move(done));
  if (begun->over()) return;
  auto it = std::make_shared<Renewal>();
  it->call = std::move(begun);
  it->began = BootClock::now();
  it->replies.assign(calls.size(), RenewReply::gone);
  it->places.resize(calls.size());
  std::map<SessionPtr, std::vector<std::size_t>> by_session;
  {
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto found = places_.find(calls[i].request);
      if (found == places_.end()) continue;
      const Place& place = *found->second;
      const bool alive = place.granted && !place.leaving && it->began < place.expires &&
                         place.lock == calls[i].lock;
      if (!alive) continue;
      it->places[i] = found->second;
      by_session[place.session].push_back(i);
    }
  }
  it->open += by_session.size();
  for (auto& [session, which] : by_session) {
    session->when_ready([this, it, session = session, which = which](const Status& status) {
      if (it->call->over()) return;
      if (!status) return it->one_done();  // gone with their session
      renew_in(it, session, which);
    });
  }
  it->one_done();
}

void ZookeeperStore::renew_in(const std::shared_ptr<Renewal>& it, const SessionPtr& session,
                              std::vector<std::size_t> which) {
  std::vector<Step> steps;
  std::vector<std::size_t> later;
  std::size_t bytes = 0;
  {
    MutexLock lock(mutex_);
    std::erase_if(which, [&](std::size_t i) LEASEHOLD_REQUIRES(mutex_) {
      return it->places[i]->session != session || it->places[i]->leaving;
    });
    for (std::size_t i = 0; i < which.size(); ++i) {
      const std::string& path = it->places[which[i]]->path;
      bytes += path.size() + 16;
      if (bytes > kMostBytes && i > 0) {
        const auto rest = which.begin() + static_cast<std::ptrdiff_t>(i);
        later.assign(rest, which.end());
        which.erase(rest, which.end());
        break;
      }
      steps.push_back({Step::Kind::check, path});
    }
  }
  if (steps.empty()) return it->one_done();
  it->call->sent();
  if (!later.empty()) ++it->open;
  const BootTime asked = BootClock::now();
  session->server().transact(std::move(steps), [this, it, session, asked, which = std::move(which)](
                                                   int rc, const std::vector<Stepped>& each) {
    if (outcome_of(rc) == Outcome::done) session->confirmed(asked);
    renewed(it, session, which, rc, each);
  });
  if (!later.empty()) renew_in(it, session, std::move(later));
}

void ZookeeperStore::renewed(const std::shared_ptr<Renewal>& it, const SessionPtr& session,
                             std::vector<std::size_t> which, int rc,
                             const std::vector<Stepped>& each) {
  switch (outcome_of(rc)) {
    case Outcome::done: {
      const Millis certain = session->certain_from(it->began);
      std::vector<std::size_t> too_early;
      {
        MutexLock lock(mutex_);
        for (const std::size_t i : which) {
          Place& place = *it->places[i];
          const bool alive = place.session == session && place.granted && !place.leaving;
          if (!alive) continue;
          if (certain < place.ttl) {
            too_early.push_back(i);
            continue;
          }
          place.expires = std::max(place.expires, it->began + place.ttl);
          it->replies[i] = RenewReply::renewed;
        }
      }
      if (!too_early.empty()) return renew_again(it, session, std::move(too_early));
      break;
    }
    case Outcome::over:
      break;  // gone with their session
    case Outcome::no_node: {
      // The others go again without the one that is missing.
      std::vector<std::size_t> left;
      for (std::size_t i = 0; i < which.size(); ++i) {
        if (outcome_of(each[i].rc) != Outcome::no_node) left.push_back(which[i]);
      }
      if (left.size() < which.size()) return renew_in(it, session, std::move(left));
      return it->call->refuse(
          Error(ErrorCode::unavailable, "the server contradicts itself", words_of(rc)));
    }
    case Outcome::lost:
      return it->call->refuse(
          Error(ErrorCode::outcome_unknown, "the connection broke during a renewal", words_of(rc)));
    default:
      return it->call->refuse(
          Error(ErrorCode::unavailable, "the server refused a renewal", words_of(rc)));
  }
  it->one_done();
}

// The last sign of life that the leader certainly knows of is too old. This renewal was one too.
void ZookeeperStore::renew_again(const std::shared_ptr<Renewal>& it, const SessionPtr& session,
                                 std::vector<std::size_t> which) {
  agenda_.add(BootClock::now() + handed_on_within(session->timeout()),
              [this, it, session, which = std::move(which)](Agenda::Reason reason) {
                if (reason == Agenda::Reason::closing || it->call->over()) return;
                renew_in(it, session, which);
              });
}

}  // namespace leasehold::zookeeper
