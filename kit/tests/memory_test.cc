#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>

#include "kit/few.h"
#include "kit/recycled_memory.h"

namespace leasehold::kit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Few, KeepsWhatItIsGivenInOrder) {
  Few<std::unique_ptr<int>> few;
  const auto values = [&] {
    std::vector<int> all;
    for (const auto& item : few) all.push_back(*item);
    return all;
  };
  EXPECT_THAT(values(), IsEmpty());
  EXPECT_TRUE(few.empty());
  few.emplace_back(std::make_unique<int>(1));
  EXPECT_THAT(values(), ElementsAre(1));
  few.emplace_back(std::make_unique<int>(2));
  few.emplace_back(std::make_unique<int>(3));
  EXPECT_THAT(values(), ElementsAre(1, 2, 3));
  EXPECT_EQ(few.size(), 3u);
}

TEST(RecycledMemory, GivesOutNothingTwice) {
  RecycledMemory memory;
  for (const std::size_t size : {1, 32, 33, 1024, 1025, 5000}) {
    for (int round = 0; round < 2; ++round) {
      std::set<void*> blocks;  // more than are kept
      for (int i = 0; i < 200; ++i) blocks.insert(memory.allocate(size));
      EXPECT_EQ(blocks.size(), 200u) << size;
      for (void* block : blocks) memory.deallocate(block, size);
    }
  }
}

TEST(RecycledMemory, IsAlignedAsAsked) {
  RecycledMemory memory;
  for (const std::size_t alignment : {8, 16, 64}) {
    void* block = memory.allocate(24, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    memory.deallocate(block, 24, alignment);
  }
}

}  // namespace
}  // namespace leasehold::kit
