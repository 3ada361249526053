// The store of session advisory locks, on a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postgres_under_test.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance,
                         ::testing::Values(StoreCase{
                             "advisory",
                             [] { return std::make_unique<PostgresUnderTest>("mode=advisory"); }}),
                         name_of_store_case);

}  // namespace
}  // namespace leasehold::testing
