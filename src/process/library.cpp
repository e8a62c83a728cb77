// libportals.so.4 for real processes: PtlInit makes this process a rank of the job that its launcher has started.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "process/live_process.hpp"

namespace spinloom::process {
namespace {

std::mutex joining;
LiveProcess* joined = nullptr;  // never freed: threads may be inside a call when the process ends
ptl::Process* rank_of_all_threads = nullptr;
bool forked = false;

// Opens closed standard streams on /dev/null, so that none of our descriptors gets the number of a stream that the
// program prints to.
void occupy_standard_streams() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", O_RDWR) < 0) return;  // gets the lowest free number, which is this one
  }
}

void say(const std::string& line) { std::fprintf(stderr, "spinloom: %s\n", line.c_str()); }

// A program that has closed its interfaces has left the job, even if it exits without PtlFini. Otherwise calls may be
// under way in other threads.
void leave_at_end() {
  if (rank_of_all_threads == nullptr) return;
  for (uint32_t number = 0; number < ptl::interface_count; ++number) {
    if (rank_of_all_threads->interface_at(number)) return;
  }
  rank_of_all_threads->initialised = std::min(rank_of_all_threads->initialised, 1u);
  PtlFini();
}

ptl::Process* join_job() {
  const std::lock_guard one_at_a_time(joining);
  if (forked) return nullptr;
  if (rank_of_all_threads != nullptr) return rank_of_all_threads;
  occupy_standard_streams();
  log::install([](log::Level, std::string_view, std::string_view message) { say(std::string(message)); },
               log::Level::warning);
  const Settings settings = read_settings(environ);
  for (const std::string& warning : settings.warnings) say(warning);
  auto launcher = live::find_launcher();
  auto made = launcher ? LiveProcess::join(settings, std::move(*launcher)) : launcher.error();
  if (!made) {
    say(text("PtlInit: ", made.error().message));
    return nullptr;
  }
  joined = made->release();
  rank_of_all_threads = new ptl::Process(*joined);
  joined->attend_to_end(leave_at_end);
  // A forked child has neither our threads nor our place in the job.
  pthread_atfork(nullptr, nullptr, [] {
    forked = true;
    rank_of_all_threads = nullptr;
    ptl::Process::forget_all_threads();
  });
  return rank_of_all_threads;
}

const bool registered = [] {
  ptl::Process::serve_all_threads(join_job);
  return true;
}();

}  // namespace
}  // namespace spinloom::process
