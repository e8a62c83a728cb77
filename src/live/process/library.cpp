// libportals.so.4 for real processes: PtlInit makes this process, or a thread of it, a rank of the job that its
// launcher has started.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "live/process/ranks_here.hpp"

namespace spinloom::process {
namespace {

// Opens closed standard streams on /dev/null, so that none of our descriptors gets the number of a stream that the
// program prints to.
void occupy_standard_streams() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", O_RDWR) < 0) return;  // open() takes the lowest free number, which is `file`
  }
}

void say(const std::string& line) { std::fprintf(stderr, "spinloom: %s\n", printable(line).c_str()); }

Settings settings() {
  occupy_standard_streams();
  log::install([](log::Level, std::string_view, std::string_view message) { say(std::string(message)); },
               log::Level::warning);
  Settings read = read_settings(environ);
  for (const std::string& warning : read.warnings) say(warning);
  return read;
}

void leave_at_end();

// The ranks of this process; never freed, because threads may be inside a call when the process ends.
RanksHere& ranks() {
  static RanksHere* const made = new RanksHere({settings, leave_at_end});
  return *made;
}

void leave_at_end() { ranks().leave_all(); }

// A forked child has neither our threads nor our place in the job.
void watch_forks() {
  [[maybe_unused]] static const int watched = pthread_atfork(nullptr, nullptr, [] { ranks().forget_in_child(); });
}

calls::Process* join_job() {
  auto joined = ranks().join();
  if (!joined) {
    say(text("PtlInit: ", joined.error().message));
    return nullptr;
  }
  watch_forks();
  return *joined;
}

int answer_to(const char* call, const Status& done) {
  if (done) return PTL_OK;
  say(text(call, ": ", done.error().message));
  return done.error().code == Code::invalid ? PTL_ARG_INVALID : PTL_FAIL;
}

int end_rank() {
  const auto left = ranks().end();
  if (!left) return answer_to("PtlSpinRankEnd", left.error());
  return *left == RanksHere::EndResult::clean ? PTL_OK : PTL_IN_USE;
}

constexpr calls::Ranks served{[](unsigned int count) { return answer_to("PtlSpinRanks", ranks().split(count)); },
                              [](unsigned int number) { return answer_to("PtlSpinRankEnter", ranks().enter(number)); },
                              end_rank};

const bool registered = [] {
  calls::Process::serve_all_threads(join_job);
  calls::serve_ranks(served);
  return true;
}();

}  // namespace
}  // namespace spinloom::process
