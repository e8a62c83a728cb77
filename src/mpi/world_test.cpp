#include "mpi/world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spinloom::mpi {
namespace {

struct World : testing::Test {
  void SetUp() override {
    for (const char* const name : {"PMIX_NAMESPACE", "PMIX_SERVER_URI2", "PMI_FD", "SLURM_JOB_ID", "SLURM_STEP_ID",
                                   "SLURM_STEP_NUM_TASKS", "PALS_APID", "PALS_APPNUM"}) {
      unsetenv(name);
    }
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(World, HasNoNameWithoutALauncher) { EXPECT_EQ(world_name("", 2), ""); }

TEST_F(World, NamesTellLaunchersJobsSizesAndPrefixesApart) {
  set("PALS_APID", "7");
  const std::string pals = world_name("", 2);
  EXPECT_NE(pals, "");
  EXPECT_EQ(pals, world_name("", 2));
  EXPECT_NE(pals, world_name("", 3));
  EXPECT_NE(pals, world_name("run", 2));
  set("PALS_APID", "8");
  EXPECT_NE(pals, world_name("", 2));
  set("PMIX_NAMESPACE", "job");
  EXPECT_NE(pals, world_name("", 2));
}

TEST_F(World, IsAStepOfSlurmOnlyIfItsTasksAreTheRanks) {
  set("SLURM_JOB_ID", "23");
  EXPECT_EQ(world_name("", 2), "");  // a batch script: launchers in it may make several worlds
  set("SLURM_STEP_ID", "0");
  set("SLURM_STEP_NUM_TASKS", "2");
  const std::string first = world_name("", 2);
  EXPECT_NE(first, "");
  EXPECT_EQ(world_name("", 3), "");
  set("SLURM_STEP_ID", "1");
  EXPECT_NE(first, world_name("", 2));
}

TEST_F(World, WordsAreSafeAsFileNames) {
  set("PMIX_NAMESPACE", "a/b c");
  EXPECT_EQ(world_name("x/y", 2).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::mpi
