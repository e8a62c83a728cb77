// Other users of PMI in a process: programs at a fixed address and at any, alone and with a library that uses PMI.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace spinloom::live {
namespace {

int exit_code_of(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PmiUsers, AreLibrariesThatNameItsVariableAndNotThisOne) {
  std::istringstream programs(SPINLOOM_LIVE_PMI_PROGRAMS);
  for (std::string program; programs >> program;) {
    EXPECT_EQ(exit_code_of(program), 0) << program;
    EXPECT_EQ(exit_code_of(program + " " SPINLOOM_LIVE_PMI_USER), 1) << program;
  }
}

}  // namespace
}  // namespace spinloom::live
