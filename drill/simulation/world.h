// The world of a simulation: who is in it, and what happens to them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "client.h"
#include "faults.h"
#include "simulation.h"

namespace leasehold::simulation {

class World {
 public:
  explicit World(const Options& options);

  Outcome run();

 private:
  // What is known of one acquisition, across clients and their lives.
  struct Acquisition {
    RequestId id{RequestId::Bytes{}};
    std::uint16_t client = 0;
    std::uint32_t life = 0;
    std::uint32_t worker = 0;
    int answers = 0;
    bool owes_release = false;
    int releases = 0;
    bool acquire_in_flight = false;
    bool release_in_flight = false;
    bool told_lost = false;
    bool reply_was_lost = false;
    bool undisturbed = true;  // its client was never paused meanwhile
    BootTime answer_by;
    RequestRef alias = 0;  // what the store knows it as, if that is another
  };

  struct Renewal {
    RequestId id;
    RequestRef on_wire;
    std::uint32_t lock;
    Time ttl;
  };
  struct CallReply {
    AcquireAnswer acquired;
    std::vector<RenewReply> renewed;
    bool released = false;
  };
  // A call to the store, in flight.
  struct Call {
    enum class Kind : std::uint8_t { acquire, renew, release } kind = Kind::acquire;
    std::uint16_t client = 0;
    std::uint32_t life = 0;
    RequestRef request = 0;
    RequestRef on_wire = 0;
    std::uint32_t lock = 0;
    Mode mode = {};
    Millis ttl{0};
    Time keep_for = 0;
    bool queue = false;
    bool confirms = false;
    bool was_busy = false;  // as one copy was told: what another gets nobody takes back
    bool answered = false;
    bool abandoned = false;  // by a shell around the engine that answered it itself
    bool repeated = false;
    bool released = false;
    bool gathered = false;  // and not sent yet
    bool batch = false;     // it goes with others, and what befalls one befalls all
    bool reply_lost = false;
    std::uint32_t neighbour = 0;  // of the same kind, before it in its batch; or 0
    int events = 0;               // that still refer to it
    std::uint64_t order = 0;
    std::vector<Renewal> renewals;
    CallReply replies[2];  // one per copy of the request
  };
  // A visit to a resource, in flight.
  struct Trip {
    std::uint16_t client = 0;
    std::uint32_t life = 0;
    std::uint32_t worker = 0;
    bool done = false;
    int events = 0;
    Visit visit;
    VisitAnswer answers[2];
  };
  template <class T>
  struct Pool {
    std::deque<T> items{1};  // number 0 is nobody's; references stay good
    std::vector<std::uint32_t> unused;

    std::uint32_t take() {
      if (unused.empty()) {
        items.emplace_back();
        return static_cast<std::uint32_t>(items.size() - 1);
      }
      const std::uint32_t at = unused.back();
      unused.pop_back();
      return at;
    }
    void drop_event(std::uint32_t at) {
      if (--items[at].events == 0) unused.push_back(at);
    }
  };

  // ---- steps
  bool step();
  bool dispatch(const Event& event);
  bool dispatch_to_client(const Event& event);
  void plan(Time time, EventKind kind, std::uint16_t client, std::uint32_t what = 0,
            std::uint32_t detail = 0);
  bool work(std::uint64_t until);
  bool let_everybody_leave();
  bool everybody_left() const;
  void judge_the_end();

  // ---- network
  Time delay();
  Time on_grid(Time time) const;
  bool message_lost();
  void send(Client& client, Call&& call, BootTime deadline);
  void depart(Client& client, std::uint32_t at);
  void depart_together(Client& client, const std::vector<std::uint32_t>& batch);
  void gather(Client& client, std::uint32_t at);
  void take_gathered(Client& client);
  void patience_ends(const Event& event);
  void forget_gathered(Client& client);
  Time until_given_up(const Client& client, const Call& call);
  bool connection_breaks(const Call& call, std::uint32_t at);
  void call_arrives(const Event& event);
  void execute(Call& call, CallReply& reply);
  bool answer_call(const Event& event);
  void deliver(Client& client, const Call& call, const CallReply* reply, ErrorCode error);
  void tell_what_the_store_tells();
  void start_visit(Client& client, std::uint32_t worker);
  void visit_arrives(const Event& event);

  // ---- engine
  void settle(Client& client);
  void plan_tick(Client& client);
  void take_call(Client& client, engine::StoreCall& call);
  void shorten_or_lengthen(const Client& client, engine::SendRenew& renew) const;
  void judge_renewal(const Client& client, const engine::SendRenew& renew);
  void judge_limit(const Acquisition& it, BootTime deadline);
  void take_notice(Client& client, engine::Notice& notice);
  void acquire_ended(Client& client, engine::AcquireEnded& ended);
  void release_ended(Client& client, const engine::ReleaseEnded& ended);
  void lease_changed(Client& client, engine::LeaseChanged changed);
  Acquisition& acquisition(const RequestId& id);
  RequestRef on_wire(Acquisition& it, RequestRef ref) const { return it.alias ? it.alias : ref; }
  RequestRef track(const RequestId& id, const Client& client, std::uint32_t worker);

  // ---- workers
  void worker_wakes(Client& client, std::uint32_t index);
  void start_acquire(Client& client, std::uint32_t index, Time cancel_after = -1);
  void cancel(Client& client, Worker& worker);
  void visit_ended(Client& client, std::uint32_t index, bool answered, const VisitAnswer& answer);
  Mode draw_mode(std::uint32_t lock);
  void stop_or_resume_renewing(Client& client, Worker& worker);
  void leave(Client& client, std::uint32_t index);
  void rest(Client& client, std::uint32_t index, Time span);

  // ---- nemesis
  void nemesis();
  void change_weather();
  void pause(Client& client);
  void resume(Client& client);
  void crash(Client& client);
  void restart(Client& client);
  void cut(Client& client);
  void crash_store();
  void pause_store();
  void forge();
  void sweep_marks();

  // ---- telling
  void problem(std::string_view check, std::string sentence);
  void note(const Client& client, drill::Kind kind, drill::Operation operation,
            const Worker& worker, Time deadline = 0);
  void note_fault(drill::Kind kind, drill::Operation operation, drill::ProcessRef process);
  std::uint16_t number(const Client& client) const {
    return static_cast<std::uint16_t>(&client - clients_.data());
  }
  BootTime local(const Client& client) const { return client.clock.local(now_); }

  const Options options_;
  const Settings settings_;
  Chance chance_;
  Recorder recorder_;
  StoreModel store_;
  ResourceModel resource_;
  Schedule schedule_;
  Time now_ = kSecond;
  std::vector<Client> clients_;
  Pool<Call> calls_;
  Pool<Trip> trips_;
  std::deque<Acquisition> acquisitions_;  // by RequestRef
  std::vector<LockName> lock_names_;
  std::vector<LockRef> lock_refs_;
  OwnerLabel owner_;
  drill::ProcessRef store_process_ = 0;
  drill::ProcessRef network_process_ = 0;
  bool storm_ = false;
  std::uint32_t weather_ = 0;  // of which plans for it are good
  bool closing_ = false;
  bool store_down_ = false;
  bool store_paused_ = false;
  std::vector<Event> at_the_paused_store_;
  std::uint64_t sent_ = 0;
  std::uint64_t last_value_ = 0;
  drill::StoreRef foreign_store_ = 0;
  Outcome outcome_;
};

}  // namespace leasehold::simulation
