// Private folders: whose they must be, and where sockets lie.
#include "base/private_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/testing/folder.hpp"

namespace spinloom {
namespace {

class PrivateFolder : public testing::Test {
 protected:
  void SetUp() override {
    const char* const named = std::getenv("XDG_RUNTIME_DIR");
    before_ = named == nullptr ? "" : named;
  }
  void TearDown() override {
    before_.empty() ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
  }
  [[nodiscard]] std::string made(const char* name, mode_t mode) const {
    std::string folder = place_.of(name);
    EXPECT_EQ(mkdir(folder.c_str(), 0700), 0);
    EXPECT_EQ(chmod(folder.c_str(), mode), 0);
    return folder;
  }
  static std::string trouble_with(const std::string& folder) {
    const Status checked = check_private(folder);
    return checked.ok() ? "" : checked.error().message;
  }

  TestFolder place_;
  std::string before_;
};

TEST_F(PrivateFolder, OnlyItsOwnersHandsMayChangeIt) {
  EXPECT_EQ(trouble_with(made("own", 0700)), "");
  EXPECT_EQ(trouble_with(made("seen", 0755)), "");
  for (const mode_t mode : {0720u, 0702u, 0777u, 01777u}) {
    const std::string folder = made(std::to_string(mode).c_str(), mode);
    EXPECT_NE(trouble_with(folder).find("chmod go-w " + folder), std::string::npos);
  }
}

TEST_F(PrivateFolder, ALinkAndAFileAreNone) {
  const std::string own = made("own", 0700);
  const std::string link = place_.of("link");
  ASSERT_EQ(symlink(own.c_str(), link.c_str()), 0);
  EXPECT_NE(trouble_with(link).find("is a link"), std::string::npos);
  EXPECT_NE(trouble_with("/dev/null").find("is no folder"), std::string::npos);
  EXPECT_NE(trouble_with(place_.of("none")).find("No such file"), std::string::npos);
}

TEST_F(PrivateFolder, AnotherUsersIsNone) {
  const std::string folder = made("theirs", 0700);
  if (chown(folder.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root can hand a folder to another user";
  EXPECT_NE(trouble_with(folder).find("belongs to user 12345"), std::string::npos);
}

TEST_F(PrivateFolder, SocketsLieWhereTheEnvironmentSays) {
  const std::string own = made("own", 0700);
  setenv("XDG_RUNTIME_DIR", own.c_str(), 1);
  EXPECT_EQ(*runtime_folder(true), own);
  const std::string open = made("open", 0777);
  setenv("XDG_RUNTIME_DIR", open.c_str(), 1);
  const auto refused = runtime_folder(false);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("XDG_RUNTIME_DIR: " + open), std::string::npos);
}

TEST_F(PrivateFolder, WithoutTheEnvironmentTheyLieInOneOfThisUsersOwn) {
  unsetenv("XDG_RUNTIME_DIR");
  const auto folder = runtime_folder(true);
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  EXPECT_EQ(folder->rfind("/tmp/spinloom-", 0), 0u);
  EXPECT_EQ(trouble_with(*folder), "");
}

}  // namespace
}  // namespace spinloom
