// The name of the world and the number of local ranks, as each launcher tells them.
#include "mpi/meeting/world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spinloom::mpi {
namespace {

struct World : testing::Test {
  void SetUp() override {
    for (const char* const name : {"PMIX_NAMESPACE",
                                   "PMIX_SERVER_URI2",
                                   "PMI_FD",
                                   "SLURM_JOB_ID",
                                   "SLURM_STEP_ID",
                                   "SLURM_STEP_NUM_TASKS",
                                   "PALS_APID",
                                   "PALS_APPNUM",
                                   "MPI_LOCALNRANKS",
                                   "OMPI_COMM_WORLD_LOCAL_SIZE",
                                   "MV2_COMM_WORLD_LOCAL_SIZE",
                                   "PMI_LOCAL_SIZE",
                                   "SLURM_NODEID",
                                   "SLURM_STEP_TASKS_PER_NODE",
                                   "SLURM_TASKS_PER_NODE",
                                   "PMI_SIZE",
                                   "PMI_RANK",
                                   "OMPI_COMM_WORLD_SIZE",
                                   "OMPI_COMM_WORLD_RANK",
                                   "PMIX_RANK"}) {
      unsetenv(name);
    }
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(World, HasNoNameWithoutALauncher) { EXPECT_EQ(world_name("", 2), ""); }

TEST_F(World, AProcessThatIsAloneNeedsNoLauncher) {
  const std::string name = lone_name("");
  EXPECT_NE(name, "");
  EXPECT_EQ(name, lone_name(""));
  EXPECT_NE(name, lone_name("run"));
  set("PALS_APID", "7");
  EXPECT_EQ(name, lone_name(""));
  EXPECT_NE(name, world_name("", 1));
}

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

TEST(TasksOfNode, ReadsSlurmsLists) {
  EXPECT_EQ(tasks_of_node("2", 0, 2), 2U);
  EXPECT_EQ(tasks_of_node("4(x3)", 0, 12), 4U);
  EXPECT_EQ(tasks_of_node("4(x3)", 2, 12), 4U);
  EXPECT_EQ(tasks_of_node("2,1(x2)", 0, 4), 2U);
  EXPECT_EQ(tasks_of_node("2,1(x2)", 1, 4), 1U);
  EXPECT_EQ(tasks_of_node("2,1(x2),3", 3, 7), 3U);
}

TEST(TasksOfNode, KnowsNothingOfOtherNodesSizesAndForms) {
  EXPECT_EQ(tasks_of_node("4(x3)", 3, 12), 0U);
  EXPECT_EQ(tasks_of_node("4(x3)", 0, 4), 0U);  // an allocation, in which a launcher made a smaller world
  EXPECT_EQ(tasks_of_node("4(x3)", 0, 13), 0U);
  for (const char* const list : {"", "x", "-2", "2,", ",2", "2(", "2(x", "2(x1", "2(x0)", "2(x-1)", "2(y1)", "2 ",
                                 "2;2", "(x2)", "99999999999", "2(x99999999999)", "999999999(x999999999)"}) {
    EXPECT_EQ(tasks_of_node(list, 0, 2), 0U) << list;
  }
}

TEST_F(World, LocalRanksAreToldByALauncherOrSlurm) {
  EXPECT_EQ(local_ranks(4), 0U);
  set("SLURM_TASKS_PER_NODE", "1,3");
  EXPECT_EQ(local_ranks(4), 0U);  // nobody says which of the nodes this is
  set("SLURM_NODEID", "1");
  EXPECT_EQ(local_ranks(4), 3U);
  set("SLURM_STEP_TASKS_PER_NODE", "2(x2)");
  EXPECT_EQ(local_ranks(4), 2U);
  EXPECT_EQ(local_ranks(8), 0U);
  // Hydra under srun: the tasks of the step are its proxies.
  set("MPI_LOCALNRANKS", "8");
  EXPECT_EQ(local_ranks(8), 8U);
}

TEST_F(World, EachLaunchersLocalRanksAreRead) {
  for (const char* const name :
       {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE"}) {
    set(name, "3");
    EXPECT_EQ(local_ranks(4), 3U) << name;
    EXPECT_EQ(local_ranks(2), 0U) << name;  // the number is that of an outer job
    unsetenv(name);
  }
}

TEST_F(World, AForeignLauncherIsNamedByItsFirstRank) {
  EXPECT_EQ(foreign_launcher(), "");
  set("PMI_SIZE", "2");
  set("PMI_RANK", "1");
  EXPECT_EQ(foreign_launcher(), "");
  set("PMI_RANK", "0");
  EXPECT_NE(foreign_launcher().find("has started 2: it is the launcher of another MPI"), std::string::npos);
  set("OMPI_COMM_WORLD_SIZE", "1");  // a launcher within a launcher
  EXPECT_EQ(foreign_launcher(), "");
}

TEST_F(World, AForeignLauncherThatSaysNoSizeIsNamedByItsSecondRank) {
  set("PMIX_RANK", "0");  // so says a program that was started by itself
  EXPECT_EQ(foreign_launcher(), "");
  set("PMIX_RANK", "1");
  EXPECT_NE(foreign_launcher().find("has started several"), std::string::npos);
  set("PMIX_RANK", "2");
  EXPECT_EQ(foreign_launcher(), "");
}

}  // namespace
}  // namespace spinloom::mpi
