// Cores that processes of this machine reserve for their threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "machine/threads.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CoreClaimsTest : public testing::Test {
 protected:
  CoreClaimsTest() {
    std::string name = testing::TempDir() + "/claims-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~CoreClaimsTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(CoreClaimsTest, TwoProcessesClaimDifferentCores) {
  CoreClaims first(folder_), second(folder_);
  EXPECT_THAT(first.claim_free({0, 1, 2, 3}, 1).cores, ElementsAre(0));
  EXPECT_THAT(second.claim_free({0, 1, 2, 3}, 2).cores, ElementsAre(1, 2));
}

TEST_F(CoreClaimsTest, ReportsContestedCoresIfTooFewAreFree) {
  CoreClaims first(folder_), second(folder_);
  first.claim_free({0, 1}, 1);
  const CoreChoice choice = second.claim_free({0, 1}, 2);
  EXPECT_THAT(choice.cores, ElementsAre(1, 0));
  EXPECT_THAT(choice.contested, ElementsAre(0));
}

TEST_F(CoreClaimsTest, KeepsTheOrderOfNamedCoresAndReportsContestedOnes) {
  CoreClaims first(folder_), second(folder_), third(folder_);
  EXPECT_THAT(first.claim_named({3, 1, 2}, 2).contested, IsEmpty());
  const CoreChoice choice = second.claim_named({2, 1, 3}, 3);
  EXPECT_THAT(choice.cores, ElementsAre(2, 1, 3));
  EXPECT_THAT(choice.contested, ElementsAre(1, 3));
  EXPECT_THAT(third.claim_free({0, 1, 2, 3}, 1).cores, ElementsAre(0));
}

TEST_F(CoreClaimsTest, ClaimEndsWhenItsHolderIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    CoreClaims claims(folder_);
    const char taken = claims.claim(5) ? 'y' : 'n';
    if (write(ends[1], &taken, 1) == 1) pause();
    _exit(1);
  }
  char taken = 0;
  ASSERT_EQ(read(ends[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_FALSE(CoreClaims(folder_).claim(5));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(CoreClaims(folder_).claim(5));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(CoreClaimsTest, ClaimsSucceedWithoutAWritableFolder) {
  CoreClaims claims(folder_ / "none");
  EXPECT_THAT(claims.claim_free({0, 1}, 1).cores, ElementsAre(0));
}

TEST_F(CoreClaimsTest, DoesNotFollowSymbolicLinks) {
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "verbscope-core-0.lock");
  CoreClaims claims(folder_);
  claims.claim(0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

}  // namespace
}  // namespace verbscope
