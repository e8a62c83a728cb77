// spinloom-threads -n COUNT PROGRAM [ARGUMENTS]: runs a program's main() on COUNT threads of this process, each a rank
// of the job with a copy of the program of its own. Under mpiexec or srun every process has COUNT ranks.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/printable.hpp"
#include "live/process/threads_rank.hpp"
#include "portals4_spin.h"

namespace spinloom::process {
namespace {

constexpr int exit_usage = 2;
constexpr int exit_environment = 3;
constexpr uint32_t ranks_max = 1024;

int complain(int code, const std::string& what) {
  std::fprintf(stderr, "spinloom-threads: %s\n", printable(what).c_str());
  return code;
}

int show_usage(FILE* where, int code) {
  std::fputs(
      "usage: spinloom-threads -n COUNT PROGRAM [ARGUMENTS]\n"
      "       mpiexec -n PROCESSES spinloom-threads -n COUNT PROGRAM [ARGUMENTS]\n"
      "Runs PROGRAM, which calls Portals 4, with COUNT ranks in each process, one thread each.\n",
      where);
  return code;
}

// The file that a shell would start.
std::string file_of(const std::string& command) {
  const char* const folders = std::getenv("PATH");
  if (command.find('/') != std::string::npos || folders == nullptr) return command;
  const std::string all = folders;
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(':', at), all.size());
    const std::string file = (end == at ? "." : all.substr(at, end - at)) + "/" + command;
    if (access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return command;
}

// Prints which rank has crashed, and then lets the signal take effect.
void on_crash(int number) {
  const ThreadsRank* const rank = ThreadsRank::current();
  char line[160];
  const int length =
      rank == nullptr
          ? std::snprintf(line, sizeof line, "spinloom-threads: crashed: %s\n", strsignal(number))
          : std::snprintf(line, sizeof line, "spinloom-threads: rank number %u of the %u of this process crashed: %s\n",
                          rank->number(), rank->count(), strsignal(number));
  if (length > 0)
    std::ignore = write(STDERR_FILENO, line, std::min<size_t>(static_cast<size_t>(length), sizeof line - 1));
  raise(number);
}

void watch_crashes() {
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
}

int run(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") return show_usage(stdout, EXIT_SUCCESS);
  uint32_t count = 0;
  if (argc < 4 || first != "-n") return show_usage(stderr, exit_usage);
  const char* const end = argv[2] + std::strlen(argv[2]);
  const auto [read, trouble] = std::from_chars(argv[2], end, count);
  if (trouble != std::errc() || read != end || count < 1 || count > ranks_max) {
    return complain(exit_usage, text("-n ", argv[2], ": 1 to ", ranks_max, " ranks"));
  }
  const std::vector<std::string> command(argv + 3, argv + argc);
  const auto loaded = namespaces::Program::open(file_of(command[0]), "");
  if (!loaded) return complain(exit_usage, loaded.error().message);
  if (PtlSpinRanks(count) != PTL_OK) return exit_environment;
  watch_crashes();
  program_invocation_name = argv[3];
  const char* const slash = std::strrchr(argv[3], '/');
  program_invocation_short_name = slash != nullptr ? const_cast<char*>(slash + 1) : argv[3];
  std::vector<std::unique_ptr<ThreadsRank>> ranks;
  for (uint32_t number = 0; number < count; ++number) {
    ranks.push_back(std::make_unique<ThreadsRank>(*loaded, number, count, command));
    if (const Status begun = ranks.back()->begin(); !begun) {
      std::ignore = complain(exit_environment, begun.error().message);
      exit_process(exit_environment);
    }
  }
  int code = EXIT_SUCCESS;
  for (const auto& rank : ranks) {
    const int of_rank = rank->wait();
    if (code == EXIT_SUCCESS) code = of_rank;
  }
  exit_process(code);  // the ranks' threads stay until then
}

}  // namespace
}  // namespace spinloom::process

int main(int argc, char** argv) { return spinloom::process::run(argc, argv); }
