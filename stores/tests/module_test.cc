#include "module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leasehold/fence_admin.h"
#include "leasehold/stores.h"

namespace leasehold {
namespace {

using ::testing::HasSubstr;

Error open(const std::string& module, const std::string& scheme) {
  Registry registry;
  registry.add_late(in_module(module, {scheme}));
  return registry.open_store(scheme + ":some/path", {}).error();
}

TEST(ModuleTest, IsLoadedAtItsFirstUse) {
  const Error from_module = open("good", "good");
  EXPECT_EQ(from_module.code, ErrorCode::busy);
  EXPECT_EQ(from_module.message, "the module saw some/path");
  Registry registry;
  registry.add_late(in_module("good", {"good"}));
  EXPECT_THAT(registry.open<FenceAdmin>("good:x").error().message,
              HasSubstr("no fence for 'good'"));
}

TEST(ModuleTest, OneThatIsMissingIsNamedWithItsPath) {
  const Error missing = open("nowhere", "good");
  EXPECT_EQ(missing.code, ErrorCode::unsupported);
  EXPECT_THAT(missing.message, HasSubstr("/leasehold/nowhere.so"));
  EXPECT_THAT(missing.store_words, HasSubstr("No such file"));
}

TEST(ModuleTest, OneOfAnotherVersionOrWithoutEntryIsRefused) {
  const Error old = open("old", "good");
  EXPECT_EQ(old.code, ErrorCode::unsupported);
  EXPECT_THAT(old.store_words, HasSubstr("version 0.0.0"));
  EXPECT_EQ(open("no_entry", "good").code, ErrorCode::unsupported);
}

TEST(ModuleTest, EverySchemeOfThisBuildIsRegistered) {
  Registry registry;
  register_stores(registry);
  const auto unknown = registry.open_store("unknown:x", {}).error().message;
  for (const char* scheme : {LEASEHOLD_EXPECTED_SCHEMES}) EXPECT_THAT(unknown, HasSubstr(scheme));
}

}  // namespace
}  // namespace leasehold
