#include "examination.h"

#include "gate_fixture.h"
#include "testing/findings.h"

namespace leasehold::gate {
namespace {

using leasehold::testing::Finds;
using leasehold::testing::is_ok;
using ::testing::AllOf;

class GateExaminationTest : public GateTest {
 protected:
  Result<Diagnosis> look() const {
    const Url url = Url::parse("gate:" + folder_.file("state")).value();
    return examine(url, {ExaminedAs::fence, std::chrono::seconds(30), {BootTime::max(), {}}});
  }
};

TEST_F(GateExaminationTest, AGateThatRunsIsOkAndOneThatDoesNotAWarning) {
  EXPECT_EQ(look().error().code, ErrorCode::unavailable) << "there is no folder yet";
  start_gate();
  EXPECT_THAT(look()->findings, AllOf(is_ok("gate.running"), is_ok("gate.unanswered")));
  ASSERT_TRUE(end_gate());
  EXPECT_THAT(look()->findings, AllOf(Finds("gate.running", Severity::warning, "No gate runs"),
                                      is_ok("gate.unanswered")));
}

TEST_F(GateExaminationTest, AResourceWithoutAnAnswerIsAWarningUntilItIsCleared) {
  start_gate();
  Pending lost = ask_later("PUT", "/a", with_token(33, 1), "x");
  upstream_->next()->hang_up();
  EXPECT_EQ(lost.get().status, 502);
  EXPECT_THAT(look()->findings, Finds("gate.unanswered", Severity::warning, "--clear 'a'"));
  ASSERT_TRUE(clear_unanswered(folder_.file("state"), ResourceName::parse("a").value()));
  EXPECT_THAT(look()->findings, is_ok("gate.unanswered"));
}

}  // namespace
}  // namespace leasehold::gate
