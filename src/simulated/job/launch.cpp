// The launcher's work, inside the library that the ranks' programs are linked with.
#include <signal.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "simulated/job/config.hpp"
#include "simulated/job/crash.hpp"
#include "simulated/job/hooks.hpp"
#include "simulated/job/standstill.hpp"

namespace spinloom::job {
namespace {

constexpr int first_program_argument = 3;  // index of the program in argv, behind the two descriptors

std::string read_all(int descriptor) {
  std::string content;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(descriptor, buffer, sizeof buffer)) > 0;)
    content.append(buffer, static_cast<size_t>(got));
  close(descriptor);
  return content;
}

// Has this process end with its parent, because no other process reads its report and output.
void end_with_parent() {
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

Status launch(int settings, const Report& report, int argc, char** argv) {
  end_with_parent();
  SPL_ASSIGN(JobConfig config, read_config(read_all(settings)));
  config.command.assign(argv + first_program_argument, argv + argc);
  SPL_ASSIGN(const auto job, Job::create(config, report));
  watch_crashes();
  watch_for_standstill(config.compute_limit_s);
  const Status status = job->run();
  std::fflush(nullptr);
  if (!status) report.say_trouble(status.error());
  // Copies of the program are still loaded, and their destructors have run, so no other exit code may run.
  _exit(status ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace
}  // namespace spinloom::job

int spl_job_main(int argc, char** argv) {
  if (argc <= spinloom::job::first_program_argument) {
    std::fputs("spinloom-sim is what 'spinloom sim' runs; use that\n", stderr);
    return EXIT_FAILURE;
  }
  const spinloom::job::Report report(std::atoi(argv[2]));
  const spinloom::Status launched = spinloom::job::launch(std::atoi(argv[1]), report, argc, argv);
  if (!launched) report.say_trouble(launched.error());
  return launched ? EXIT_SUCCESS : EXIT_FAILURE;
}
