// What is the same on every store: types, names and refusals. The rest is in the suite of the
// stores.
#include <gmock/gmock.h>

#include <string>
#include <type_traits>

#include "fake_store.h"
#include "leasehold/permits.h"
#include "leasehold/rate_limit.h"
#include "leasehold/read_write_lock.h"
#include "testing/results.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using ::testing::HasSubstr;

template <class Held>
concept Upgradable = requires(ReadWriteLock lock, const Held& lease) {
  lock.upgrade(lease);
};
static_assert(!Upgradable<ReadLease> && !Upgradable<FencedReadLease>, "two of them would deadlock");
static_assert(!std::is_convertible_v<ReadLease, WriteLease>);
static_assert(!std::is_convertible_v<WriteLease, ReadLease>);
static_assert(!std::is_convertible_v<FencedReadLease, FencedWriteLease>);
static_assert(!std::is_constructible_v<WriteLease, Lease>, "only the lock makes one");
static_assert(!std::is_constructible_v<Lease, FencedPermit>, "a token must not get lost unseen");
static_assert(std::is_nothrow_move_constructible_v<FencedPermit>);

class LockModesTest : public LockPatternTest {};

TEST_F(LockModesTest, StoreWithoutModesRefusesReadersAndPermits) {
  ReadWriteLock lock(client, name("job"));
  EXPECT_TRUE(bad(lock.read(), ErrorCode::unsupported));
  EXPECT_TRUE(bad(lock.read_fenced(), ErrorCode::unsupported));
  auto permits = Permits::of(client, "gpu", 4).value();
  EXPECT_TRUE(bad(permits.acquire(), ErrorCode::unsupported));
  EXPECT_TRUE(bad(permits.acquire_fenced(), ErrorCode::unsupported));
  EXPECT_TRUE(bad(RateLimit::of(client, "calls", {}), ErrorCode::unsupported));
  EXPECT_EQ(faults->calls(Operation::acquire), 0);
}

TEST_F(LockModesTest, WriterIsAloneWhateverTheModeOfItsOptions) {
  ReadWriteLock lock(client, name("job"));
  const auto writer = lock.write_fenced({.mode = Mode::shared()});
  ASSERT_TRUE(writer) << to_string(writer.error());
  EXPECT_EQ(writer->mode(), Mode::exclusive());
  EXPECT_TRUE(bad(lock.write(), ErrorCode::busy));
}

TEST_F(LockModesTest, WrongPermitsAreRefusedAtOnce) {
  for (const std::int64_t count : {0L, -1L, Mode::kMostPermits + 1}) {
    EXPECT_TRUE(bad(Permits::of(client, "gpu", count), ErrorCode::invalid)) << count;
  }
  EXPECT_TRUE(bad(Permits::of(client, "", 1), ErrorCode::invalid));
  EXPECT_TRUE(good(Permits::of(client, std::string(507, 'x'), 1)));
  const auto too_long = Permits::of(client, std::string(508, 'x'), 1);
  ASSERT_TRUE(bad(too_long, ErrorCode::invalid)) << "no room for '#9999'";
  EXPECT_THAT(too_long.error().message, HasSubstr("resource name"));
}

TEST_F(LockModesTest, WrongRatesAreRefusedAtOnce) {
  for (const Rate rate :
       {Rate{0, 1s}, Rate{Mode::kMostPermits + 1, 1s}, Rate{1, 99ms}, Rate{1, 25h}, Rate{1, -1s}}) {
    EXPECT_TRUE(bad(RateLimit::of(client, "calls", rate), ErrorCode::invalid))
        << rate.count << " in " << rate.interval.count();
  }
}

}  // namespace
}  // namespace leasehold
