// Whose the nodes are: read, and tried, by the client library as another program would use it.
#include <gmock/gmock.h>

#include "leasehold/client.h"
#include "leasehold/zookeeper/fence.h"
#include "proxied_server.h"
#include "testing/raw_store.h"
#include "testing/tokens.h"

#define THREADED
#include <zookeeper/zookeeper.h>

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;

// A program with these credentials, "user:password", or with none.
class Program {
 public:
  explicit Program(const std::string& credentials = "")
      : handle_(zookeeper_init2(long_server().address().c_str(), nullptr, 20'000, nullptr, nullptr,
                                0, [](const char*) {})) {
    if (credentials.empty()) return;
    zoo_add_auth(handle_, "digest", credentials.data(), static_cast<int>(credentials.size()),
                 nullptr, nullptr);
  }
  ~Program() { zookeeper_close(handle_); }
  Program(const Program&) = delete;

  std::vector<std::string> children(const std::string& path) {
    String_vector found{};
    EXPECT_EQ(zoo_get_children(handle_, path.c_str(), 0, &found), ZOK) << path;
    std::vector<std::string> names(found.data, found.data + found.count);
    deallocate_String_vector(&found);
    return names;
  }
  // Who may do what: "digest:ann:... 31".
  std::vector<std::string> rights(const std::string& path) {
    ACL_vector acl{};
    Stat stat{};
    EXPECT_EQ(zoo_get_acl(handle_, path.c_str(), &acl, &stat), ZOK) << path;
    std::vector<std::string> all;
    for (int i = 0; i < acl.count; ++i) {
      const ACL& it = acl.data[i];
      all.push_back(std::string(it.id.scheme) + ":" + it.id.id + " " + std::to_string(it.perms));
    }
    deallocate_ACL_vector(&acl);
    return all;
  }

  int read(const std::string& path) {
    char data[16];
    int length = sizeof data;
    return zoo_get(handle_, path.c_str(), 0, data, &length, nullptr);
  }
  int write(const std::string& path) { return zoo_set(handle_, path.c_str(), "x", 1, -1); }
  int remove(const std::string& path) { return zoo_delete(handle_, path.c_str(), -1); }
  int list(const std::string& path) {
    String_vector found{};
    const int rc = zoo_get_children(handle_, path.c_str(), 0, &found);
    deallocate_String_vector(&found);
    return rc;
  }
  int create_in(const std::string& path) {
    return zoo_create(handle_, (path + "/x").c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, nullptr, 0);
  }

 private:
  zhandle_t* const handle_;
};

// `path` and everything below it.
std::vector<std::string> tree(Program& program, const std::string& path) {
  std::vector<std::string> all = {path};
  for (const std::string& name : program.children(path)) {
    const auto below = tree(program, path + "/" + name);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

// A lock that is held, another with permits, a record of `once`, and a fence's mark.
class Used {
 public:
  explicit Used(const std::string& login = "")
      : url_("zookeeper://" + login + long_server().address() + folder),
        client_(open_zookeeper(url_)) {
    lease_.emplace(client_.acquire("job").value());
    EXPECT_TRUE(client_.set_permits(lock_name("gpu"), 2));
    permit_.emplace(client_.acquire("gpu", {.mode = Mode::permit_of(2)}).value());
    EXPECT_TRUE(client_.record(*lease_, "key", {"", "result"}));
    EXPECT_TRUE(zookeeper::Resources::open(url_)->fence("ledger")->enter(token_of(1, '1')));
  }

  const std::string folder = fresh_folder();

 private:
  const std::string url_;
  Client client_;
  std::optional<Lease> lease_;
  std::optional<Lease> permit_;
};

TEST(ZookeeperAcl, EverythingOfAUserIsForThatUserOnly) {
  const Used used("ann:s3cret@");
  Program ann("ann:s3cret");
  const auto nodes = tree(ann, used.folder);
  EXPECT_THAT(nodes, Contains(HasSubstr("/.lineage")));
  EXPECT_THAT(nodes, Contains(HasSubstr("/job/_c_")));
  EXPECT_THAT(nodes, Contains(HasSubstr("/gpu/permits-2")));
  EXPECT_THAT(nodes, Contains(HasSubstr("/key-key")));
  EXPECT_THAT(nodes, Contains(HasSubstr("ledger")));
  Program strangers[] = {Program(), Program("ann:wr0ng"), Program("bob:s3cret")};
  for (const std::string& path : nodes) {
    const auto rights = ann.rights(path);
    ASSERT_EQ(rights.size(), 1u) << path;
    EXPECT_THAT(rights[0], ::testing::MatchesRegex("digest:ann:.+ 31")) << path;
    for (Program& stranger : strangers) {
      EXPECT_EQ(stranger.read(path), ZNOAUTH) << path;
      EXPECT_EQ(stranger.write(path), ZNOAUTH) << path;
      EXPECT_EQ(stranger.list(path), ZNOAUTH) << path;
      EXPECT_EQ(stranger.create_in(path), ZNOAUTH) << path;
      // Who may delete is a right in the folder above, and that of the folder is everybody's.
      EXPECT_EQ(stranger.remove(path), path == used.folder ? ZNOTEMPTY : ZNOAUTH) << path;
    }
  }
  EXPECT_EQ(tree(ann, used.folder), nodes) << "and all is still there";
}

TEST(ZookeeperAcl, WithoutAUserEverythingIsForEverybody) {
  const Used used;
  Program anybody;
  for (const std::string& path : tree(anybody, used.folder)) {
    EXPECT_THAT(anybody.rights(path), ::testing::ElementsAre("world:anyone 31")) << path;
  }
}

}  // namespace
}  // namespace leasehold::testing
