#include "module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold {
namespace {

using ::testing::HasSubstr;

struct Nothing {
  static constexpr std::string_view kOffer = "nothing";
};

Technology of(const std::string& scheme) {
  return {
      .name = scheme, .title = scheme, .schemes = {{scheme, {{"store", scheme + ":some/path"}}}}};
}

Error open(const std::string& module, const std::string& scheme) {
  Registry registry;
  registry.add(of(scheme), in_module(module));
  return registry.open_store(scheme + ":some/path", {}).error();
}

TEST(ModuleTest, IsLoadedAtItsFirstUse) {
  const Error from_module = open("good", "good");
  EXPECT_EQ(from_module.code, ErrorCode::busy);
  EXPECT_EQ(from_module.message, "the module saw some/path");
  Registry registry;
  registry.add(of("good"), in_module("good"));
  EXPECT_THAT(registry.open<Nothing>("good:x").error().message, HasSubstr("no nothing for 'good'"));
}

TEST(ModuleTest, OneThatIsMissingIsNamedWithItsPathAndItsPackage) {
  const Error missing = open("no_where", "good");
  EXPECT_EQ(missing.code, ErrorCode::unsupported);
  EXPECT_THAT(missing.message, HasSubstr("/leasehold/no_where.so is not installed"));
  EXPECT_THAT(missing.message, HasSubstr("the package leasehold-no-where brings it"));
  const auto cell = load_module({"no_where", "drill_no_where", "entry"});
  ASSERT_FALSE(cell);
  EXPECT_THAT(cell.error().message, HasSubstr("/leasehold/drill_no_where.so"));
  EXPECT_THAT(cell.error().message, HasSubstr("the package leasehold-no-where brings it"));
}

TEST(ModuleTest, OneOfAnotherVersionOrWithoutEntryIsRefused) {
  const Error old = open("old", "good");
  EXPECT_EQ(old.code, ErrorCode::unsupported);
  EXPECT_THAT(old.store_words, HasSubstr("version 0.0.0"));
  EXPECT_EQ(open("no_entry", "good").code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace leasehold
