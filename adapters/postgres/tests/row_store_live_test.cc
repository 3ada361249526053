// The store of lease rows, on a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postgres_under_test.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance,
                         ::testing::Values(StoreCase{
                             "rows",
                             [] { return std::make_unique<PostgresUnderTest>("mode=rows"); }}),
                         name_of_store_case);

}  // namespace
}  // namespace leasehold::testing
