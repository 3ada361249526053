// `leasehold doctor` on the embedded store: what it prints, and how it ends.
#include <nlohmann/json.hpp>

#include "cli/doctor/report.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;

class DoctorTest : public CliTest {
 protected:
  // A lock store that was used, and a database with a fence.
  void prepare() const {
    ASSERT_EQ(leasehold({"run", "job", "--store", store(), "--", "true"}).status, 0);
    ASSERT_EQ(shell("sqlite3 " + path("app.db") + " 'CREATE TABLE orders(id)'").status, 0);
  }
  std::string fence() const { return "sqlite:" + path("app.db"); }
  json findings_of(const Finished& finished, const std::string& check) const {
    json some = json::array();
    const json all = json::parse(finished.out);
    for (const json& it : all["findings"]) {
      if (it["check"] == check) some.push_back(it);
    }
    return some;
  }
};

TEST_F(DoctorTest, AHealthyPairEndsWithZero) {
  prepare();
  ASSERT_EQ(leasehold({"fence", "install", fence()}).status, 0);
  const Finished found = leasehold({"doctor", "--store", store(), "--fence", fence(), "--json"});
  EXPECT_EQ(found.err, "");
  const json all = json::parse(found.out);
  EXPECT_EQ(all["store"], store());
  EXPECT_EQ(all["fence"], fence());
  EXPECT_EQ(all["guarantee"], "correctness");
  EXPECT_EQ(all["counts"]["danger"], 0);
  EXPECT_EQ(findings_of(found, "fence.installed")[0]["severity"], "ok");
  EXPECT_EQ(findings_of(found, "store.guarantee")[0]["severity"], "ok");
  // The folder of the tests may be in memory, which is worth a warning.
  EXPECT_EQ(found.status, all["counts"]["warning"] == 0 ? 0 : 78) << found.out;
}

TEST_F(DoctorTest, AFenceThatIsNotThereFails) {
  prepare();
  const Finished found = leasehold({"doctor", "--store", store(), "--fence", fence()});
  EXPECT_EQ(found.status, 78);
  EXPECT_THAT(found.out, ::testing::StartsWith("danger    fence.installed at " + fence()));
  EXPECT_THAT(found.out, AllOf(HasSubstr("Fix: leasehold fence install '" + fence() + "'"),
                               HasSubstr("\nok "), HasSubstr(": 1 danger, ")));
  EXPECT_THAT(found.out, Not(HasSubstr("\033["))) << "no colours outside a terminal";
  EXPECT_EQ(
      leasehold({"doctor", "--store", store(), "--fence", fence(), "--fail-on", "danger"}).status,
      78);
}

TEST_F(DoctorTest, AForeignLineageIsAWarningThatFailOnCanLetPass) {
  prepare();
  ASSERT_EQ(leasehold({"fence", "install", fence()}).status, 0);
  const std::string other(32, 'e');
  ASSERT_EQ(leasehold({"fence", "adopt", fence(), "orders", "--lineage", other + "/job",
                       "--at-least", "1"})
                .status,
            0);
  const Words words = {"doctor", "--store", store(), "--fence", fence(), "--json"};
  const Finished found = leasehold(words);
  EXPECT_EQ(found.status, 78);
  const json lineage = findings_of(found, "fence.lineage");
  ASSERT_EQ(lineage.size(), 1u);
  EXPECT_EQ(lineage[0]["severity"], "warning");
  EXPECT_THAT(lineage[0]["fix"].get<std::string>(), ::testing::StartsWith("Give the store of that"))
      << "most often it is only the wrong one";
  Words lenient = words;
  lenient.insert(lenient.end(), {"--fail-on", "danger"});
  EXPECT_EQ(leasehold(lenient).status, 0);

  // The command that it tells does it.
  const std::string fix = lineage[0]["fix"];
  EXPECT_EQ(shell(fix.substr(fix.find("leasehold fence adopt"))).status, 0) << fix;
  EXPECT_EQ(findings_of(leasehold(words), "fence.lineage")[0]["severity"], "ok");
}

TEST_F(DoctorTest, ARestoredStoreIsADangerAndFenceShowSaysSo) {
  prepare();
  ASSERT_EQ(leasehold({"fence", "install", fence()}).status, 0);
  const std::string copy = path("copy.db");
  ASSERT_EQ(shell("sqlite3 " + path("locks.db") + " '.backup " + copy + "'").status, 0);
  const std::string enter =
      "sqlite3 " + path("app.db") +
      " \"INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES('orders',"
      " $LEASEHOLD_TOKEN, '$LEASEHOLD_LINEAGE', '$LEASEHOLD_REQUEST')\"";
  ASSERT_EQ(
      leasehold({"run", "job", "--fenced", "--store", store(), "--", "sh", "-c", enter}).status, 0);
  const Words doctor = {"doctor", "--store", store(), "--fence", fence(), "--json"};
  const Words show = {"fence", "show", fence(), "--store", store(), "--json"};
  EXPECT_EQ(findings_of(leasehold(doctor), "fence.restored_store")[0]["severity"], "ok");
  EXPECT_EQ(leasehold(show).err, "");

  ASSERT_EQ(shell("cd " + path("") + " && rm locks.db* && mv copy.db locks.db").status, 0);
  const json found = findings_of(leasehold(doctor), "fence.restored_store");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["severity"], "danger");
  const Finished shown = leasehold(show);
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.err, HasSubstr("Resource 'orders' has seen token "));
  const json ahead = json::parse(shown.out).at("ahead_of_store");
  ASSERT_EQ(ahead.size(), 1u);
  EXPECT_EQ(ahead[0].at("resource"), "orders");
  EXPECT_GT(json::parse(shown.out).at("fences").at(0).at("token"), ahead[0].at("counted_to"));
}

TEST_F(DoctorTest, FenceShowSaysIfTheStoreCannotBeAsked) {
  prepare();
  ASSERT_EQ(leasehold({"fence", "install", fence()}).status, 0);
  const Words show = {"fence", "show", fence(), "--store", "sqlite:" + path("missing.db")};
  EXPECT_EQ(leasehold(show).err, "") << "nothing has entered";
  const std::string enter =
      "INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES('orders', 7, '" +
      std::string(32, 'a') + "/job', '" + std::string(32, '1') + "')";
  ASSERT_EQ(finish({"sqlite3", path("app.db"), enter}).status, 0);
  const Finished shown = leasehold(show);
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.err, HasSubstr("not compared with the lock store"));
  EXPECT_THAT(shown.out, HasSubstr("orders"));
}

TEST_F(DoctorTest, WrongInputAndMissingStoresHaveTheirOwnStatus) {
  EXPECT_EQ(leasehold({"doctor", "--store", store()}).status, 69);
  EXPECT_EQ(leasehold({"doctor", "--store", "nonsense"}).status, 64);
  EXPECT_EQ(leasehold({"doctor", "--store", "file:/tmp/x"}).status, 77);
  EXPECT_EQ(leasehold({"doctor", "--store", store(), "--ttl", "1ms"}).status, 64);
  EXPECT_EQ(leasehold({"doctor", "--store", store(), "--timeout", "1ms"}).status, 64);
  EXPECT_EQ(leasehold({"doctor", "--store", store(), "--timeout", "11m"}).status, 64);
  EXPECT_EQ(leasehold({"doctor", "--store", store(), "--fail-on", "note"}).status, 64);
  EXPECT_EQ(leasehold({"doctor", "extra"}).status, 64);
}

TEST_F(DoctorTest, AFileThatIsNoDatabaseIsNamed) {
  write("garbage.db", std::string(5000, '!'));
  const Finished found = leasehold({"doctor", "--store", "sqlite:" + path("garbage.db")});
  EXPECT_EQ(found.status, 69);
  EXPECT_THAT(found.err, HasSubstr("cannot read " + path("garbage.db") + ": the file is not"));
}

TEST_F(DoctorTest, TheStoreComesFromTheEnvironmentToo) {
  prepare();
  EXPECT_THAT(shell("LEASEHOLD_STORE=" + store() + " leasehold doctor").out,
              AllOf(HasSubstr("sqlite.store: "), HasSubstr("\n" + store() + ": ")));
}

TEST(DoctorReportTest, TheWorstIsFirstAndWhatComesFromAServerIsMadeVisible) {
  DiagnosisReport report;
  report.store = "redis://cache";
  report.findings = {{"a.ok", Severity::ok, "one", "Fine.", "", ""},
                     {"b.unseen", Severity::unseen, "one", "Not \033[31mseen.", "So.", ""},
                     {"c.danger", Severity::danger, "two", "Bad.", "Worse.", "Mend it"},
                     {"d.note", Severity::note, "two", "Known.", "So.", ""},
                     {"e.warning", Severity::warning, "two", "Hm.", "So.", "Mend it"}};
  EXPECT_EQ(doctor_text(report),
            "danger    c.danger at two: Bad.\n          Worse.\n          Fix: Mend it\n"
            "warning   e.warning at two: Hm.\n          So.\n          Fix: Mend it\n"
            "unseen    b.unseen at one: Not \uFFFD[31mseen.\n          So.\n"
            "note      d.note at two: Known.\n          So.\n"
            "ok        a.ok at one: Fine.\n"
            "\nredis://cache: 1 danger, 1 warning, 1 unseen, 1 note, 1 ok\n");
  const auto all = json::parse(doctor_json(report));
  EXPECT_EQ(all["worst"], "danger");
  EXPECT_EQ(all["guarantee"], nullptr);
  EXPECT_EQ(all["fence"], nullptr);
  EXPECT_EQ(all["counts"]["unseen"], 1);
  EXPECT_EQ(all["findings"].size(), 5u);
  EXPECT_EQ(all["findings"][2]["fix"], "Mend it");
}

}  // namespace
}  // namespace leasehold::cli
