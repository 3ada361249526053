// How many permits a lock has, by its operator's word: a child of its folder that stays.
#include "queue.h"
#include "store.h"
#include "store_base/mode_conflict.h"

namespace leasehold::zookeeper {
namespace {

constexpr int kMostTries = 16;

}  // namespace

struct ZookeeperStore::Permits {
  std::shared_ptr<Call<std::monostate>> call;
  LockName lock;
  std::optional<std::int64_t> permits;
  std::string folder;
  int rounds = 0;

  // As it was read before the children.
  std::string data = {};
  std::int32_t version = 0;
};

void ZookeeperStore::set_permits(LockName lock, std::optional<std::int64_t> permits,
                                 CallContext context, Completion<std::monostate> done) {
  auto call = begin<std::monostate>(context, std::move(done));
  if (call->over()) return;
  if (!traits_.modes) return call->refuse(Error(ErrorCode::unsupported, traits_.why_no_modes));
  const std::string folder = folder_of(lock);
  auto it = std::make_shared<Permits>(Permits{call, std::move(lock), permits, folder});
  with_session(call, [this, it](const SessionPtr& session) { put_permits(it, session); });
}

void ZookeeperStore::put_permits(const std::shared_ptr<Permits>& it, const SessionPtr& session) {
  if (it->call->over()) return;
  if (++it->rounds > kMostTries) {
    return it->call->refuse(Error(ErrorCode::unavailable, "the lock changes again and again"));
  }
  session->server().sync(it->folder, [](int) {});
  session->server().get(it->folder, false, [it](int, std::string data, const NodeStat& stat) {
    it->data = std::move(data);
    it->version = stat.version;
  });
  session->server().children(
      it->folder, [this, it, session](int rc, const auto& names, const NodeStat&) {
        const Outcome outcome = outcome_of(rc);
        if (outcome == Outcome::done) return put_permits_in(it, session, names);
        if (outcome != Outcome::no_node) {
          return it->call->refuse(
              Error(ErrorCode::unavailable, "the queue could not be read", words_of(rc)));
        }
        if (!it->permits) return it->call->answer({});
        session->server().create(
            it->folder, "", NodeMode::container,
            [this, it, session](int made, const std::string&, const NodeStat&) {
              const Outcome result = outcome_of(made);
              if (result == Outcome::done || result == Outcome::node_exists) {
                return put_permits(it, session);
              }
              it->call->refuse(Error(ErrorCode::unavailable,
                                     "the folder of the lock could not be made", words_of(made)));
            });
      });
}

// The data of the folder is written as it is: who is about to take a slot looks again.
void ZookeeperStore::put_permits_in(const std::shared_ptr<Permits>& it, const SessionPtr& session,
                                    const std::vector<std::string>& names) {
  const Queue queue(names);
  if (it->permits && queue.size() > 0 && !queue.mode(0).is_permit()) {
    return it->call->refuse(in_use_without_permits(it->lock, queue.mode(0)));
  }
  if (queue.set_permits() == it->permits) return it->call->answer({});
  std::vector<Step> steps = {{Step::Kind::set, it->folder, it->data, it->version}};
  for (const std::string& name : names) {
    if (permits_in(name)) steps.push_back({Step::Kind::remove, it->folder + "/" + name});
  }
  if (it->permits) {
    steps.push_back({Step::Kind::create, it->folder + "/" + permits_name(*it->permits)});
  }
  if (queue.size() == 0) return transact_permits(it, session, std::move(steps));
  // Who waits for the one permit watches the holder's node.
  const std::string holder = it->folder + "/" + std::string(queue.name(0));
  session->server().get(holder, false,
                        [this, it, session, holder, steps = std::move(steps)](
                            int rc, const std::string& data, const NodeStat& stat) mutable {
                          if (outcome_of(rc) == Outcome::no_node) return put_permits(it, session);
                          if (outcome_of(rc) == Outcome::done) {
                            steps.push_back({Step::Kind::set, holder, data, stat.version});
                          }
                          transact_permits(it, session, std::move(steps));
                        });
}

void ZookeeperStore::transact_permits(const std::shared_ptr<Permits>& it, const SessionPtr& session,
                                      std::vector<Step> steps) {
  it->call->sent();
  session->server().transact(
      std::move(steps), [this, it, session](int rc, const std::vector<Stepped>&) {
        const Outcome outcome = outcome_of(rc);
        if (outcome == Outcome::done) return it->call->answer({});
        const bool changed =
            rc == kBadVersion || outcome == Outcome::no_node || outcome == Outcome::node_exists;
        if (changed) return put_permits(it, session);
        it->call->refuse(
            Error(outcome == Outcome::lost ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
                  "that the permits were set was not confirmed", words_of(rc)));
      });
}

}  // namespace leasehold::zookeeper
