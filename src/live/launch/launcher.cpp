#include "live/launch/launcher.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "live/launch/mpi_beside.hpp"

namespace spinloom::live {
namespace {

// The launcher of a process that its user started: a job of one.
class SingleProcess final : public Launcher {
 public:
  [[nodiscard]] const char* name() const override { return "none"; }
  [[nodiscard]] uint32_t rank() const override { return 0; }
  [[nodiscard]] uint32_t size() const override { return 1; }
  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait&) override {
    return std::vector<std::string>{mine};
  }
};

// A variable by which a launcher says that there are other processes, but offers no interface to meet them.
struct JobVariable {
  const char* name;  // the number of processes, or anything where `counts` is false
  bool counts;
  const char* remedy;
};
constexpr std::array<JobVariable, 4> job_variables{{
    {"SLURM_STEP_NUM_TASKS", true, "start it with srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list has those there are)"},
    {"PMI_PORT", false, "start it without mpiexec's option -pmi-port"},
    {"PMI_SIZE", true,
     "its launcher sets no PMI_FD: start it with one that offers PMI-1 or PMIx, as mpiexec of MPICH does"},
    {"OMPI_COMM_WORLD_SIZE", true, "its launcher sets no PMIX_RANK: start it with mpirun of Open MPI 4 or later"},
}};

Status check_for_others() {
  for (const JobVariable& hint : job_variables) {
    const char* const value = std::getenv(hint.name);
    if (value == nullptr) continue;
    uint32_t count = 0;
    std::from_chars(value, value + std::strlen(value), count);
    if (hint.counts && count <= 1) continue;
    return fail(Code::environment, hint.name, "=", value, " says that this process is one of several, but nothing ",
                "says how to meet the others; ", hint.remedy, ". Alone it runs with env -u ", hint.name);
  }
  return {};
}

// The function to be called when this process ends.
struct ExitAction {
  Launcher* launcher = nullptr;
  pid_t process = 0;  // the process that registered it, not a forked child
  void (*at_exit)() = nullptr;
  bool has_failed = false;  // no rank of the process could start
} exit_action;

// A process that exits with a failure before it has left does not finish: the launcher ends the other processes. We
// tell the launcher, because Hydra takes a process for one that has ended well if it sees the process end before its
// connection.
void end_with_process(int code, void*) {
  if (exit_action.launcher == nullptr || exit_action.process != getpid()) return;
  const bool is_in_job = exit_action.at_exit != nullptr || exit_action.has_failed;
  if (is_in_job && code != 0) exit_action.launcher->abort(code);
  if (exit_action.has_failed || (is_in_job && code != 0)) return;
  if (const auto at_exit = std::exchange(exit_action.at_exit, nullptr)) at_exit();
  if (Launcher* const launcher = std::exchange(exit_action.launcher, nullptr)) launcher->finish();
}

// Functions for the end of a process run in the reverse order of registration. This one is registered when the library
// is loaded, so it runs after those that are registered later.
[[maybe_unused]] const int registered = on_exit(end_with_process, nullptr);

}  // namespace

Result<std::unique_ptr<Launcher>> find_launcher() {
  SPL_ASSIGN(auto pmi1, find_pmi1());
  if (pmi1) return pmi1;
  SPL_ASSIGN(auto pmix, find_pmix());
  if (pmix) return pmix;
  SPL_TRY(check_for_others());
  return std::unique_ptr<Launcher>(std::make_unique<SingleProcess>());
}

void hand_over_output(int limit_ms) {
  for (FILE* const stream : {stdout, stderr}) {
    pollfd room{fileno(stream), POLLOUT, 0};
    if (poll(&room, 1, 0) != 1 || room.revents != POLLOUT || ftrylockfile(stream) != 0) continue;
    fflush_unlocked(stream);
    funlockfile(stream);
  }
  const auto is_unread = [](int file) {
    struct stat status{};
    int bytes = 0;
    return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) && ioctl(file, FIONREAD, &bytes) == 0 && bytes > 0;
  };
  for (int ms = 0; ms < limit_ms && (is_unread(STDOUT_FILENO) || is_unread(STDERR_FILENO)); ++ms) usleep(1'000);
}

Status check_rank_count(uint32_t ranks) {
  if (ranks <= live_rank_count_max) return {};
  return fail(Code::environment, "the job has ", ranks, " ranks; Portals 4 names at most ", live_rank_count_max,
              " nodes (live_rank_count_max): start fewer ranks");
}

Launcher::~Launcher() {
  if (exit_action.launcher == this) exit_action = {};
}

void set_exit_action(Launcher& launcher, void (*at_exit)()) {
  exit_action = {&launcher.of_process(), getpid(), at_exit};
}

void note_failed_start(Launcher& launcher) {
  if (exit_action.launcher == nullptr) exit_action = {&launcher.of_process(), getpid(), nullptr, true};
}

void enter(Launcher& launcher) { ++launcher.of_process().entered_nics_; }

void withdraw(Launcher& launcher) { --launcher.of_process().entered_nics_; }

void leave(Launcher& launcher) {
  Launcher& process_launcher = launcher.of_process();
  if (--process_launcher.entered_nics_ > 0) return;
  exit_action = {};
  if (mpi_beside().stage == MpiStage::not_initialized || process_launcher.is_shared()) {
    exit_action = {&process_launcher, getpid(), nullptr};
  } else {
    process_launcher.finish();
  }
}

void warn_of_waiting(uint32_t ranks, const StartWait& wait) {
  log::emit(log::Level::warning, "live",
            text("PtlInit has waited ", wait.report_after_s, " s for other ranks: each of the ", ranks,
                 " of this job must call it"));
}

Error start_timeout(const char* launcher, uint32_t ranks, const StartWait& wait) {
  return fail(Code::environment, launcher, ": not all of the ", ranks, " ranks have called PtlInit in ", wait.limit_s,
              " s; where some need longer, set SPINLOOM_START_S (0: wait for ever)");
}

}  // namespace spinloom::live
