// goal_bench - events a second of host time (on the CPU) that run() and run_loggopsim() do on one core, and the largest
// memory of the process, for patterns of known sizes; each in a process of its own, the best of several runs, because
// the machine is shared.
//
//   spinloom_goal_bench [ours|tree|loggopsim PATTERN RANKS BYTES]
//
// `tree`: ours through a fat tree of switches with 64 ports.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/goal/patterns/patterns.hpp"

namespace {

using namespace spinloom;

struct Row {
  std::string rules;
  std::string name;
  uint32_t ranks;
  uint64_t bytes;
};

// The CPU time of this process: other work on the machine is not in it.
double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct RunResult {
  uint64_t events;
  uint64_t makespan;
};

Result<RunResult> run(const std::string& rules, const schedule::Schedule& schedule) {
  if (rules != "loggopsim") {
    goal::Model model;
    if (rules == "tree") model.network = network::Config{.topology = network::FatTree{.radix = 64}};
    SPL_ASSIGN(const goal::Outcome outcome, goal::run(schedule, model));
    return RunResult{outcome.events, outcome.makespan_ps};
  }
  SPL_ASSIGN(const goal::LogGopSimOutcome outcome, goal::run_loggopsim(schedule, {}));
  return RunResult{outcome.events, outcome.makespan};
}

int measure(const Row& row) {
  const double start = now_seconds();
  const auto schedule = goal::make_pattern(row.name, row.ranks, row.bytes);
  if (!schedule) {
    std::fprintf(stderr, "goal_bench: %s\n", schedule.error().message.c_str());
    return 2;
  }
  const double make_seconds = now_seconds() - start;
  double best = 1e18;
  RunResult outcome{};
  for (int round = 0; round < 3; ++round) {
    const double begin = now_seconds();
    const auto result = run(row.rules, *schedule);
    best = std::min(best, now_seconds() - begin);
    if (!result) {
      std::fprintf(stderr, "goal_bench: %s\n", result.error().message.c_str());
      return 1;
    }
    outcome = *result;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%-9s %-29s %8u %7llu %10llu %8.3f %8.3f %10.2f %9.1f %14llu\n", row.rules.c_str(), row.name.c_str(),
              row.ranks, static_cast<unsigned long long>(row.bytes), static_cast<unsigned long long>(outcome.events),
              make_seconds, best, static_cast<double>(outcome.events) / best / 1e6,
              static_cast<double>(usage.ru_maxrss) / 1024, static_cast<unsigned long long>(outcome.makespan));
  std::fflush(stdout);
  return 0;
}

int measure_in_process(const Row& row) {
  const pid_t child = fork();
  if (child == 0) _exit(measure(row));
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // Memory stays with the process between the runs: the first one pays for its pages, the best does not.
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  std::printf("one core, host time on the CPU, best of 3\n%-9s %-29s %8s %7s %10s %8s %8s %10s %9s %14s\n", "rules",
              "pattern", "ranks", "bytes", "events", "make s", "run s", "M events/s", "peak MiB", "makespan");
  std::fflush(stdout);
  if (argc == 5) {
    return measure({argv[1], argv[2], static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10)),
                    std::strtoull(argv[4], nullptr, 10)});
  }
  const struct {
    const char* name;
    uint32_t ranks;
    uint64_t bytes;
  } patterns[] = {
      {"dissemination", 65'536, 64},     {"binomial_broadcast", 1'048'576, 1024},
      {"pairwise_exchange", 1024, 64},   {"recursive_doubling_allreduce", 65'536, 64},
      {"ring_allreduce", 1024, 1 << 20}, {"binomial_reduce", 1'048'576, 1024},
      {"linear_gather", 16'384, 64},     {"linear_scatter", 16'384, 64},
      {"linear_alltoall", 1024, 64},     {"linear_barrier", 16'384, 1},
  };
  int failed = 0;
  for (const char* const rules : {"ours", "tree", "loggopsim"}) {
    for (const auto& pattern : patterns)
      failed |= measure_in_process({rules, pattern.name, pattern.ranks, pattern.bytes});
  }
  return failed;
}
