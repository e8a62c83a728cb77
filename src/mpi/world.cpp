#include "mpi/world.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/result.hpp"

namespace spinloom::mpi {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

// When a process began, in ticks since the machine did: with its number, one process for ever.
std::string start_of(pid_t process) {
  std::ifstream file(text("/proc/", process, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return {};
  const size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  constexpr int start_field = 20;  // counted from the one behind the name
  for (int i = 0; i < start_field; ++i) {
    if (!(fields >> field)) return {};
  }
  return field;
}

// Hydra gives each rank one end of a socket; its own end belongs to the proxy of this machine and job.
std::string hydra() {
  const std::string number(variable("PMI_FD"));
  if (number.empty()) return {};
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(std::atoi(number.c_str()), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0) return {};
  return text("hydra-", peer.pid, "-", start_of(peer.pid));
}

std::string both(const char* kind, const char* first, const char* second) {
  if (variable(first).empty()) return {};
  return text(kind, "-", variable(first), "-", variable(second));
}

// A step of srun whose tasks are the ranks. Batch scripts have a job but no step, and a launcher that one of them starts
// beside another, or inside of a step, makes worlds of its own.
std::string slurm(int64_t size) {
  if (variable("SLURM_STEP_NUM_TASKS") != std::to_string(size)) return {};
  return both("slurm", "SLURM_JOB_ID", "SLURM_STEP_ID");
}

// A name of any length and letters as 16 hexadecimal digits (FNV-1a, 64 bits).
std::string short_of(std::string_view name) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char letter : name) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100'0000'01b3;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016lx", static_cast<unsigned long>(hash));
  return digits;
}

}  // namespace

std::string world_name(std::string_view prefix, int64_t size) {
  // PMIx counts its namespaces for each launcher; the launcher's address tells two of them apart.
  std::string job = both("pmix", "PMIX_NAMESPACE", "PMIX_SERVER_URI2");
  if (job.empty()) job = hydra();
  if (job.empty()) job = slurm(size);
  if (job.empty()) job = both("pals", "PALS_APID", "PALS_APPNUM");
  if (job.empty()) return {};
  const std::string user = std::to_string(getuid());
  return text("spinloom-mpi-", user, "-", short_of(prefix), "-", short_of(text(job, "-of-", size)));
}

}  // namespace spinloom::mpi
