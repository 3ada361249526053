#include "status_rows.h"

#include <gtest/gtest.h>

namespace leasehold::postgres {
namespace {

Rows one_row(std::vector<std::string> columns) {
  PGresult* const result = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  std::string name = "column";
  PGresAttDesc column{};
  column.name = name.data();
  std::vector<PGresAttDesc> about(columns.size(), column);
  PQsetResultAttrs(result, static_cast<int>(about.size()), about.data());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    PQsetvalue(result, 0, static_cast<int>(i), columns[i].data(),
               static_cast<int>(columns[i].size()));
  }
  return Rows(result);
}

TEST(StatusRows, NoTimeIsNegativeWhateverStandsInTheTable) {
  const std::string id(32, 'a');
  const auto locks = read_status(one_row({"job", id, "f", id, "\033[2J", "34", "-5", "-7", "f",
                                          "job", "34", "7", "3", "\033[2J", "9"}));
  ASSERT_TRUE(locks);
  ASSERT_EQ(locks->size(), 1u);
  ASSERT_TRUE(locks->front().holder());
  EXPECT_EQ(locks->front().holder()->held_for, Millis(0));
  EXPECT_EQ(locks->front().holder()->remaining, Millis(0));
  EXPECT_EQ(locks->front().holder()->owner, "(an unreadable label)");
  EXPECT_EQ(locks->front().holder()->note, "(an unreadable note)");
  EXPECT_EQ(locks->front().holder()->mode, leasehold::Mode::permit_of(7));
  EXPECT_EQ(locks->front().holder()->slot, Slot{3});
  EXPECT_EQ(locks->front().set_permits, 9);
}

}  // namespace
}  // namespace leasehold::postgres
