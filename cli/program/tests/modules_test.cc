// A program whose modules are not what it needs: one sentence, the documented status, nothing run.
#include <algorithm>
#include <filesystem>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

namespace fs = std::filesystem;

// A copy of the program, which looks for modules beside itself.
class ModulesTest : public CliTest {
 protected:
  ModulesTest() {
    fs::create_directories(fs::path(program()).parent_path());
    fs::create_directories(fs::path(module()).parent_path());
    fs::copy_file(LEASEHOLD_PROGRAM, program());
  }

  std::string program() const { return path("bin/leasehold"); }
  std::string module() const { return path(LEASEHOLD_LIBDIR "/leasehold/redis.so"); }

  void expect_refused(const std::string& says) const {
    for (const Words& words :
         {Words{"run", "job", "--", "touch", path("ran")}, Words{"hold", "job"}, Words{"ls"},
          Words{"release", "job", "--force"}}) {
      Words argv = {program(), words[0], "--store", "redis://127.0.0.1:1"};
      argv.insert(argv.end(), words.begin() + 1, words.end());
      const Finished done = finish(argv);
      EXPECT_EQ(done.status, 77) << words[0] << ": " << done.err;
      EXPECT_EQ(done.out, "") << words[0];
      EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
      EXPECT_THAT(done.err, AllOf(HasSubstr("the module " + module()), HasSubstr(says)));
    }
    EXPECT_FALSE(fs::exists(path("ran")));
  }

  // What needs no module goes on, and nobody holds anything.
  void expect_embedded_store_works() const {
    EXPECT_EQ(finish({program(), "run", "job", "--store", store(), "--", "true"}).status, 0);
    const Finished list = finish({program(), "ls", "--store", store()});
    EXPECT_THAT(list.out, AllOf(HasSubstr("free"), Not(HasSubstr("held"))));
  }
};

TEST_F(ModulesTest, OneThatIsMissingIsNamedWithThePackageThatBringsIt) {
  expect_refused("is not installed; the package leasehold-redis brings it");
  expect_embedded_store_works();
}

TEST_F(ModulesTest, OneOfAnotherVersionIsRefused) {
  fs::copy_file(LEASEHOLD_OLD_MODULE, module());
  expect_refused("cannot be loaded (it is of version 0.0.0, and this program of ");
  expect_embedded_store_works();
}

TEST_F(ModulesTest, OneThatIsNoModuleIsRefused) {
  write(fs::relative(module(), path("")).string(), "half a download");
  expect_refused("cannot be loaded (");
  expect_embedded_store_works();
}

}  // namespace
}  // namespace leasehold::cli
