// The decision path itself. What is constant costs nothing until it is asked for.
#include <algorithm>

#include "cli/advise/advice.h"
#include "leasehold/outbox.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

constexpr Choice kHarmless[] = {{"yes", "a double run wastes some work, no more"},
                                {"no", "a double run does damage"}};
constexpr Choice kThroughput[] = {{"yes", "the work is too long or too dear to be done in vain"},
                                  {"no", "some wasted work now and then is acceptable"}};
constexpr Choice kIdempotent[] = {
    {"yes", "a repeat can be made to change nothing more"},
    {"no", "each run changes something, and it cannot be recognised"}};
constexpr Choice kFence[] = {{"yes", "the resource can check a number in the step that writes"},
                             {"no", "the resource takes what comes, from whoever it comes"}};
constexpr Choice kMachines[] = {{"one", "all who do the work are on one machine"},
                                {"many", "several machines do the work"}};
constexpr Question kQuestions[] = {
    {"harmless", "Is it harmless if the work runs twice at the same time, or twice in a row?",
     "Harmless: a cache is rebuilt twice, a report is made twice. Not harmless: a card is charged "
     "twice, a number is given out twice, a file is written by two at once.",
     kHarmless},
    {"idempotent", "Can the work be made idempotent, so that a repeat has no further effect?",
     "With a key that is stored together with the effect, a unique constraint, an upsert, or an "
     "idempotency key that the other side understands.",
     kIdempotent},
    {"fence", "Can the resource fence: check a number in the same step as the write?",
     "A database can, in one transaction, and so can anything with a conditional write. A mail, a "
     "printer or a plain web service cannot.",
     kFence},
    {"throughput", "Is coordination needed for throughput?",
     "If two do the same work, one of them worked in vain, or lost the race and must start over. "
     "Yes: that would cost too much time or money. No: it is rare, or cheap.",
     kThroughput},
    {"machines", "Does the work run on one machine, or across several?",
     "Containers on one host count as one machine if they can share a file.", kMachines},
};

// What has no node leads to a recommendation.
constexpr Answer kAtHarmless[] = {{"yes", "is-waste-bad"}, {"no", "idempotent"}};
constexpr Answer kAtWaste[] = {{"yes", "where-to-run"}, {"no", "no-lock"}};
constexpr Answer kAtWhere[] = {{"one", "run-local"}, {"many", "store-for-efficiency"}};
constexpr Answer kAtIdempotent[] = {{"yes", "is-repeat-dear"}, {"no", "fence"}};
constexpr Answer kAtRepeat[] = {{"yes", "where-to-run-once"}, {"no", "idempotency-key"}};
constexpr Answer kAtWhereOnce[] = {{"one", "once-local"}, {"many", "store-for-efficiency"}};
constexpr Answer kAtFence[] = {{"yes", "is-race-dear"}, {"no", "where-without-fence"}};
constexpr Answer kAtRace[] = {{"yes", "where-fenced"}, {"no", "compare-and-set"}};
constexpr Answer kAtWhereFenced[] = {{"one", "fenced-local"}, {"many", "store-for-correctness"}};
constexpr Answer kAtWithoutFence[] = {{"one", "flock"}, {"many", "store-for-outbox"}};

constexpr Node kNodes[] = {
    {"harmless", "harmless", kAtHarmless},
    {"is-waste-bad", "throughput", kAtWaste},
    {"where-to-run", "machines", kAtWhere},
    {"idempotent", "idempotent", kAtIdempotent},
    {"is-repeat-dear", "throughput", kAtRepeat},
    {"where-to-run-once", "machines", kAtWhereOnce},
    {"fence", "fence", kAtFence},
    {"is-race-dear", "throughput", kAtRace},
    {"where-fenced", "machines", kAtWhereFenced},
    {"where-without-fence", "machines", kAtWithoutFence},
};

constexpr std::string_view kCompareAndSet = R"(SELECT balance, version FROM account WHERE id = 7;
-- ... compute; then write, if nobody was faster. No row changed: start over.
UPDATE account SET balance = 70, version = version + 1 WHERE id = 7 AND version = 1;
)";

constexpr std::string_view kOnceCpp = R"(#include <leasehold/sqlite/once.h>

leasehold::Result<std::string> pay(sqlite3* db);  // your own: works, and returns what to remember

leasehold::Result<leasehold::OnceResult> pay_once(sqlite3* db) {
  if (auto ok = leasehold::sqlite::install_once(db); !ok) return leasehold::fail(ok.error());
  auto once = leasehold::sqlite::Once::open(db);
  if (!once) return leasehold::fail(once.error());
  return once->run("payment/7731", "amount=30", [&](auto& tx) { return pay(tx.handle()); });
}
)";

constexpr std::string_view kFencedCpp = R"(#include <leasehold/client.h>
#include <leasehold/sqlite/fence.h>

leasehold::Status pay(sqlite3* db);  // your own: reads, then writes

leasehold::Status pay_fenced(leasehold::Client& locks, sqlite3* db) {
  auto lease = locks.acquire_fenced("job", {.ttl = std::chrono::seconds(30)});
  if (!lease) return leasehold::fail(lease.error());
  auto fence = leasehold::sqlite::Fence::open(db, "account/7");
  if (!fence) return leasehold::fail(fence.error());
  return fence->transaction(lease->token(), [&](auto& tx) { return pay(tx.handle()); });
}
)";

constexpr Recommendation kRecommendations[] = {
    {"no-lock", false, "You need no lock.",
     "A double run does no harm and costs little. A lock would only add one more thing that can "
     "fail.",
     "./job\n", "", "", "If it becomes expensive or harmful one day, ask again.",
     "docs/guarantees.md"},

    {"run-local", true, "Run it under a lease on this machine.",
     "A double run only wastes work, so a lease without a fence is enough. The embedded store "
     "needs no server.",
     "leasehold run job --busy-status 0 -- ./job\n", "", "",
     "This saves work; it does not protect anything. While 'leasehold run' itself is frozen for "
     "longer than its lease, two may run at once.",
     "docs/run.md"},

    {"run-shared", true, "Run it under a lease in the store that you have.",
     "A double run does no harm, or you have seen to that with a key. So the lease only saves "
     "work, "
     "and every store is good enough for that.",
     "leasehold run job --store {url} --busy-status 0 -- ./job\n", "", "",
     "This saves work; it does not protect anything: a lease can end under a holder that is only "
     "slow.",
     "docs/run.md"},

    {"pin", true, "Let one of the machines do it, under a lease of its own.",
     "Your machines share no store that can keep locks (an SQLite file is for one machine), and a "
     "double run would only waste work. That is not worth a new server.",
     "leasehold run job --busy-status 0 -- ./job  # on that machine only\n", "", "",
     "While that machine is down nobody does the work. If that is too bad, set up PostgreSQL and "
     "answer --store postgres.",
     "docs/run.md"},

    {"idempotency-key", false, "You need no lock: store a key together with the effect.",
     "A repeat finds the key and changes nothing, whoever it comes from and however late. A lock "
     "would not make it safer.",
     "", R"(BEGIN;
INSERT INTO done(key) VALUES('payment/7731');  -- the primary key: a repeat fails here, and rolls back
UPDATE account SET balance = balance - 30 WHERE id = 7;
COMMIT;
)",
     kOnceCpp,
     "Key and effect must be in one transaction, and an error must end it (sqlite3 -bail, psql -v "
     "ON_ERROR_STOP=1). Keep the keys for longer than anybody could repeat. What leaves the "
     "database, as a mail does, is not covered: hand the key on.",
     "docs/ways-not-to-lock.md"},

    {"once-local", true, "Run it under a lease, once per key.",
     "You made a repeat harmless; the lease and the key save its cost. Whoever comes later "
     "exits with 0 and does nothing.",
     "leasehold run job --once \"$(date +%F)\" --busy-status 0 -- ./job\n", "", "",
     "This is at least once: if the machine dies between the end of the work and the note of it, "
     "the work runs again. After a failure the next one tries again.",
     "docs/run.md"},

    {"compare-and-set", false, "You need no lock: compare a version when you write.",
     "The resource can check a number, and losing a race is cheap. So read without a lock, and "
     "write only if nobody else has written since. Whoever is late changes nothing.",
     "", kCompareAndSet, "",
     "Every writer must do this. If many write the same thing at once, most of them start over: "
     "then answer --throughput yes.",
     "docs/ways-not-to-lock.md"},

    {"compare-and-set-no-store", false, "You need no lock: compare a version when you write.",
     "Your machines share no store that can keep locks (an SQLite file is for one machine). But "
     "the "
     "resource itself can check a number, and that is the part that makes it safe. A lock would "
     "only "
     "save the work of those who lose the race.",
     "", kCompareAndSet, "",
     "Every writer must do this. If too much work is lost in races, set up PostgreSQL and answer "
     "--store postgres.",
     "docs/ways-not-to-lock.md"},

    {"fenced-local", true, "Take a fenced lease, and enter the fence at the resource.",
     "A double run does damage, so the lease alone is not enough: it can end under a holder that "
     "is "
     "only slow. The resource refuses the token of whoever was overtaken. The embedded store makes "
     "safe tokens and needs no server.",
     "leasehold fence install sqlite:app.db  # once; app.db is your own database\n"
     "leasehold run job --fenced -- ./job\n",
     R"(BEGIN IMMEDIATE;
INSERT INTO leasehold_enter(resource, token, lineage, request)
  VALUES('account/7', $LEASEHOLD_TOKEN, '$LEASEHOLD_LINEAGE', '$LEASEHOLD_REQUEST');
UPDATE account SET balance = balance - 30 WHERE id = 7;
COMMIT;
)",
     kFencedCpp,
     "Enter before you read, in the transaction that writes, and end it when it is refused "
     "(sqlite3 "
     "-bail). A writer that does not enter is not refused.",
     "docs/fence-sqlite.md"},

    {"fenced-shared", true, "Take a fenced lease, and check its token at the resource.",
     "A double run does damage, so the lease alone is not enough: it can end under a holder that "
     "is "
     "only slow. This store makes tokens that only grow; the resource refuses the lower one.",
     "leasehold run job --fenced --store {url} -- ./job\n",
     R"(-- enter before you read:
UPDATE account SET fence = $LEASEHOLD_TOKEN WHERE id = 7 AND fence <= $LEASEHOLD_TOKEN;
SELECT balance FROM account WHERE id = 7 AND fence = $LEASEHOLD_TOKEN;  -- no row: overtaken, stop
UPDATE account SET balance = balance - 30 WHERE id = 7 AND fence = $LEASEHOLD_TOKEN;
)",
     "",
     "This is the smallest fence there is. It does not know lineages: after the lock store was "
     "restored from a backup, its numbers may come again. An adapter with a fence of its own "
     "checks "
     "that too (leasehold fence install).",
     "docs/fence-postgres.md"},

    {"claim", true, "Take a lease for the order, and a claim at the resource for safety.",
     "A double run does damage, and this store cannot make safe tokens (a failover of Redis may "
     "repeat them), so --fenced is refused. A claim needs no order. Write the id of your "
     "acquisition into the "
     "resource, and commit only if it is still there.",
     "leasehold run job --store {url} -- ./job\n",
     R"(UPDATE account SET claim = '$LEASEHOLD_REQUEST' WHERE id = 7;  -- first, and committed
SELECT balance FROM account WHERE id = 7;                       -- then read, and work
UPDATE account SET balance = 70 WHERE id = 7 AND claim = '$LEASEHOLD_REQUEST';  -- no row: stop
)",
     "",
     "The last to claim wins, also if it is the slow one: then the rightful holder must try again.",
     "docs/fence-postgres.md"},

    {"flock", true, "Use flock(1): a lock that does not end by itself.",
     "A double run does damage and the resource cannot refuse the late. So the lock must never end "
     "under a holder that still lives. On one machine the kernel can promise that: it frees this "
     "lock when the last process that has it ends. No lease can, ours neither.",
     "flock --nonblock --conflict-exit-code 75 job.lock ./job\n", "", "",
     "A job that hangs keeps the lock until somebody ends it, and so do processes that it leaves "
     "behind. What it sent out before it died may still arrive. Only on a local file system.",
     "docs/run.md"},

    {"outbox", true,
     "No lock makes this safe. Write down what is to be done, and mark it before it "
     "is done.",
     "A double run does damage, the resource cannot refuse the late, and a lease can end under a "
     "holder that is only slow. But your database can compare: whoever marks the row first may "
     "act. "
     "The lease only keeps the senders out of each other's way.",
     "leasehold run job --store {url} --busy-status 0 -- ./job\n",
     R"(-- once: CREATE TABLE outbox(id TEXT PRIMARY KEY, what TEXT NOT NULL, taken TEXT)
INSERT INTO outbox(id, what) VALUES('payment/7731', 'charge 30');  -- where it is decided
-- the job, committed before it acts. No row changed: somebody else has it, so leave it alone.
UPDATE outbox SET taken = '$LEASEHOLD_REQUEST' WHERE id = 'payment/7731' AND taken IS NULL;
)",
     "",
     "This is at most once: a row that was taken by a job that died was perhaps done. A person or "
     "a "
     "comparison with the other side must decide.",
     "docs/guarantees.md"},

    {"single-owner", true, "No lock makes this safe across machines. Give the resource one owner.",
     "A double run does damage, the resource cannot refuse the late, and across machines every "
     "lock "
     "is a lease: it can end under a holder that is only slow. So let one machine talk to the "
     "resource, and the others hand their work to it. There, a lock that does not end by itself is "
     "enough.",
     "flock --nonblock --conflict-exit-code 75 job.lock ./job  # on the owner only\n", "", "",
     "While the owner is down the work waits. Before another machine becomes the owner, be sure "
     "that the old one is off: a program cannot know that.",
     "docs/guarantees.md"},
};

// The question for the store and what follows from it: by what the technologies say of themselves.
class Stores {
 public:
  Stores() {
    register_stores();
    technologies_ = Registry::standard().technologies();
    const auto left_out = Registry::standard().left_out();
    technologies_.insert(technologies_.end(), left_out.begin(), left_out.end());
    std::erase_if(technologies_, [](const Technology& it) { return !it.use(kStoreUse); });
    for (const Technology& it : technologies_) add(it);
    choices.push_back({"none", "nothing that all of them reach"});
    add("none", "pin", "compare-and-set-no-store", "single-owner");
    help_ = "If you have several, name the first of these: " + best_first() + ".";
    questions.assign(std::begin(kQuestions), std::end(kQuestions));
    questions.push_back({"store",
                         "Which store do you have already, that all of these machines reach?",
                         help_, choices});
    nodes.assign(std::begin(kNodes), std::end(kNodes));
    nodes.push_back({"store-for-efficiency", "store", efficiency_});
    nodes.push_back({"store-for-correctness", "store", correctness_});
    nodes.push_back({"store-for-outbox", "store", outbox_});
  }

  std::vector<Choice> choices;
  std::vector<Question> questions;
  std::vector<Node> nodes;
  std::vector<StoreHint> hints;

 private:
  void add(const Technology& it) {
    choices.push_back({it.name, it.title});
    if (it.one_machine) return add(it.name, "pin", "compare-and-set-no-store", "single-owner");
    hints.push_back({it.name, it.use(kStoreUse)->example, it.beware});
    add(it.name, "run-shared", it.guarantee == Guarantee::correctness ? "fenced-shared" : "claim",
        it.use(Outbox::kOffer) ? "outbox" : "single-owner");
  }
  void add(std::string_view word, std::string_view efficiency, std::string_view correctness,
           std::string_view outbox) {
    efficiency_.push_back({word, efficiency});
    correctness_.push_back({word, correctness});
    outbox_.push_back({word, outbox});
  }
  std::string best_first() const {
    std::string names;
    for (const Guarantee worth : {Guarantee::correctness, Guarantee::efficiency}) {
      for (const Technology& it : technologies_) {
        if (it.guarantee != worth || it.one_machine) continue;
        names += (names.empty() ? "" : ", ") + it.name;
      }
    }
    return names;
  }

  std::vector<Technology> technologies_;
  std::vector<Answer> efficiency_;
  std::vector<Answer> correctness_;
  std::vector<Answer> outbox_;
  std::string help_;
};

const Stores& stores() {
  static const Stores all;
  return all;
}

}  // namespace

std::span<const Question> questions() {
  return stores().questions;
}
std::span<const Node> nodes() {
  return stores().nodes;
}
std::span<const Recommendation> recommendations() {
  return kRecommendations;
}
std::span<const StoreHint> store_hints() {
  return stores().hints;
}

}  // namespace leasehold::cli
