// Launchers: PMI-1 with a server that accepts "init" once, as Slurm's does; ranks that do not come; environments of
// several processes without a way to meet.
#include "live/launch/launcher.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "portals4.h"

namespace spinloom::live {
namespace {

// Replaces all variables of launchers in the environment while it lives.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> only) {
    for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_JOBID", "PMIX_RANK", "PMIX_NAMESPACE",
                             "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
      const auto given = only.find(name);
      if (given != only.end()) setenv(name, given->second.c_str(), 1);
      names_.emplace_back(name);
    }
  }
  ~Environment() {
    for (const std::string& name : names_) {
      unsetenv(name.c_str());
      if (before_.count(name) != 0) setenv(name.c_str(), before_[name].c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> before_;
  std::vector<std::string> names_;
};

// Serves rank 0 of two, as Slurm does: answers "init" once, ignores unknown lines, hangs up at "finalize".
class Server {
 public:
  explicit Server(bool other_comes, std::string places = {}) : other_comes_(other_comes), places_(std::move(places)) {
    int both[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) std::abort();
    ours_ = both[0];
    theirs_ = both[1];
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    shutdown(ours_, SHUT_RDWR);
    thread_.join();
    close(ours_);
    close(theirs_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] Environment environment() const {
    return Environment({{"PMI_FD", std::to_string(theirs_)}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  }
  // The lines that were answered, by their commands, and those that need no answer.
  [[nodiscard]] std::vector<std::string> heard() {
    shutdown(ours_, SHUT_RDWR);
    thread_.join();
    thread_ = std::thread([] {});
    return heard_;
  }

 private:
  void serve() {
    std::string line;
    for (char letter = 0; read(ours_, &letter, 1) == 1;) {
      if (letter != '\n') {
        line += letter;
        continue;
      }
      const std::string said = answer(line);
      if (!said.empty()) {
        heard_.push_back(line.substr(0, line.find(' ')));
        EXPECT_EQ(write(ours_, said.data(), said.size()), static_cast<ssize_t>(said.size()));
      }
      if (line.rfind("cmd=abort", 0) == 0) heard_.push_back(line);
      if (line == "cmd=finalize") {  // later lines are ignored
        shutdown(ours_, SHUT_RDWR);
        return;
      }
      line.clear();
    }
  }
  std::string answer(const std::string& line) {
    const auto begins = [&line](const char* with) { return line.rfind(with, 0) == 0; };
    if (begins("cmd=init")) return started_++ == 0 ? "cmd=response_to_init rc=0\n" : "";
    if (begins("cmd=get_my_kvsname")) return "cmd=my_kvsname rc=0 kvsname=7.0\n";
    if (begins("cmd=put kvsname=7.0 key=spinloom-0 value=")) {
      put_ = line.substr(line.rfind('=') + 1);
      return "cmd=put_result rc=0\n";
    }
    if (begins("cmd=barrier_in")) return other_comes_ ? "cmd=barrier_out rc=0\n" : "";
    if (begins("cmd=get kvsname=7.0 key=spinloom-0")) return "cmd=get_result rc=0 value=" + put_ + "\n";
    if (begins("cmd=get kvsname=7.0 key=spinloom-1")) return "cmd=get_result rc=0 value=other\n";
    if (begins("cmd=get kvsname=7.0 key=PMI_process_mapping")) {
      return places_.empty() ? "cmd=get_result rc=-1 msg=unknown\n" : "cmd=get_result rc=0 value=" + places_ + "\n";
    }
    if (begins("cmd=finalize")) return "cmd=finalize_ack rc=0\n";
    return "";
  }

  bool other_comes_;
  std::string places_;
  int ours_ = -1;
  int theirs_ = -1;
  int started_ = 0;
  std::string put_;
  std::vector<std::string> heard_;
  std::thread thread_;
};

TEST(Launcher, Pmi1BeginsAndEndsOnce) {
  Server server(true);
  const Environment environment = server.environment();
  auto launcher = find_launcher();
  ASSERT_TRUE(launcher.ok()) << launcher.error().message;
  EXPECT_STREQ((*launcher)->name(), "PMI-1");
  EXPECT_EQ((*launcher)->size(), 2u);
  const auto all = (*launcher)->exchange("mine", {});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(*all, (std::vector<std::string>{"mine", "other"}));
  enter(**launcher);
  leave(**launcher);
  (*launcher)->finish();  // the launcher has hung up; no signal may end us
  EXPECT_EQ(server.heard(), (std::vector<std::string>{"cmd=init", "cmd=get_my_kvsname", "cmd=put", "cmd=barrier_in",
                                                      "cmd=get", "cmd=get", "cmd=finalize"}));
}

TEST(Launcher, Pmi1NamesTheJobIfAllItsRanksAreHere) {
  for (const char* places : {"(vector,(0,1,2))", "(vector,(0,2,1))", "(vector,(0,1,1))", ""}) {
    Server server(true, places);
    const Environment environment = server.environment();
    auto launcher = find_launcher();
    ASSERT_TRUE(launcher.ok()) << launcher.error().message;
    const auto job = (*launcher)->job_here();
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(*job, std::string(places) == "(vector,(0,1,2))" ? "pmi1-7.0" : "") << places;
    ASSERT_TRUE((*launcher)->exchange("mine", {}).ok());
    EXPECT_EQ(server.heard(), (std::vector<std::string>{"cmd=init", "cmd=get_my_kvsname", "cmd=get", "cmd=put",
                                                        "cmd=barrier_in", "cmd=get", "cmd=get"}));
  }
}

TEST(Launcher, TheLastNicOfAProcessThatLeavesFinishes) {
  class Counting final : public Launcher {
   public:
    [[nodiscard]] const char* name() const override { return "counting"; }
    [[nodiscard]] uint32_t rank() const override { return 0; }
    [[nodiscard]] uint32_t size() const override { return 1; }
    [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait&) override {
      return std::vector<std::string>{mine};
    }
    void finish() override { ++finished; }
    int finished = 0;
  } launcher;
  for (int nic = 0; nic < 3; ++nic) enter(launcher);
  withdraw(launcher);
  leave(launcher);
  EXPECT_EQ(launcher.finished, 0);
  leave(launcher);
  EXPECT_EQ(launcher.finished, 1);
}

TEST(Launcher, Pmi1IsToldOfAFailure) {
  Server server(true);
  const Environment environment = server.environment();
  auto launcher = find_launcher();
  ASSERT_TRUE(launcher.ok()) << launcher.error().message;
  ASSERT_TRUE((*launcher)->exchange("mine", {}).ok());
  (*launcher)->abort(3);
  EXPECT_EQ(server.heard().back(), "cmd=abort exitcode=3");
}

// However slow the machine is, the child waits until it has been read: its limit is an hour.
TEST(Launcher, OutputIsHandedOverOnceItHasBeenRead) {
  int output[2];
  int told[2];
  ASSERT_EQ(pipe(output), 0);
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(output[1], STDERR_FILENO);
    std::fputs("why", stderr);
    hand_over_output(3'600'000);
    _exit(write(told[1], "a", 1) == 1 ? 3 : 4);
  }
  close(output[1]);
  close(told[1]);
  pollfd printed{output[0], POLLIN, 0};
  pollfd handed_over{told[0], POLLIN, 0};
  EXPECT_EQ(poll(&printed, 1, -1), 1);
  EXPECT_EQ(poll(&handed_over, 1, 100), 0) << "nobody has read it yet";
  char said[4] = "";
  EXPECT_EQ(read(output[0], said, 3), 3);
  EXPECT_STREQ(said, "why");
  EXPECT_EQ(poll(&handed_over, 1, -1), 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  close(output[0]);
  close(told[0]);
}

TEST(Launcher, ARankThatDoesNotComeIsToldOfAndThenAnError) {
  Server server(false);
  const Environment environment = server.environment();
  auto launcher = find_launcher();
  ASSERT_TRUE(launcher.ok()) << launcher.error().message;
  std::vector<std::string> said;
  log::install([&said](log::Level, std::string_view, std::string_view line) { said.emplace_back(line); },
               log::Level::warning);
  const auto all = (*launcher)->exchange("mine", {.report_after_s = 0, .limit_s = 1});
  log::install(nullptr, log::Level::error);
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.error().message.find("SPINLOOM_START_S"), std::string::npos) << all.error().message;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("each of the 2 of this job must call it"), std::string::npos) << said[0];
}

TEST(Launcher, OneOfSeveralThatNothingConnectsIsNotAlone) {
  const struct {
    std::map<std::string, std::string> environment;
    const char* says;  // null: the process is alone
  } rows[] = {{{}, nullptr},
              {{{"SLURM_STEP_NUM_TASKS", "2"}}, "srun --mpi=pmix"},
              {{{"SLURM_STEP_NUM_TASKS", "1"}}, nullptr},
              {{{"PMI_PORT", "host:1"}}, "-pmi-port"},
              {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, "env -u PMI_SIZE"},
              {{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"PMI_FD", "999"}}, nullptr},
              {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_FD", "999"}}, "PMI_FD=999 is no connection"},
              {{{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}, {"PMI_FD", "999"}}, "PMI_RANK is 2"},
              {{{"OMPI_COMM_WORLD_SIZE", "2"}}, "mpirun"}};
  for (const auto& row : rows) {
    const Environment environment(row.environment);
    const auto launcher = find_launcher();
    if (row.says == nullptr) {
      ASSERT_TRUE(launcher.ok()) << launcher.error().message;
      EXPECT_STREQ((*launcher)->name(), "none");
    } else {
      ASSERT_FALSE(launcher.ok()) << row.says;
      EXPECT_NE(launcher.error().message.find(row.says), std::string::npos) << launcher.error().message;
    }
  }
}

// Rules: P4F-2.8.
TEST(Launcher, AJobHasAsManyRanksAsThereAreNodeIds) {
  static_assert(live_rank_count_max <= PTL_NID_ANY);
  EXPECT_TRUE(check_rank_count(0xffff).ok()) << "the last rank is node 0xfffe";
  const Status more = check_rank_count(0x10000);
  ASSERT_FALSE(more.ok());
  EXPECT_NE(more.error().message.find("65536 ranks"), std::string::npos) << more.error().message;
  EXPECT_NE(more.error().message.find("live_rank_count_max"), std::string::npos) << more.error().message;
}

}  // namespace
}  // namespace spinloom::live
