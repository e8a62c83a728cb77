#include "mpi/meeting/world.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
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

// Returns the time when a process began, in ticks since the machine was started. With the process's number it names one
// process for ever.
std::string start_time_of(pid_t process) {
  std::ifstream file(text("/proc/", process, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return {};
  const size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  constexpr int start_field = 20;  // its number among the fields behind the name
  for (int i = 0; i < start_field; ++i) {
    if (!(fields >> field)) return {};
  }
  return field;
}

// Hydra gives each rank one end of a socket; its own end belongs to the proxy of this machine and job.
std::string hydra_name() {
  const std::string number(variable("PMI_FD"));
  if (number.empty()) return {};
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(std::atoi(number.c_str()), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0) return {};
  return text("hydra-", peer.pid, "-", start_time_of(peer.pid));
}

std::string pair_name(const char* kind, const char* first, const char* second) {
  if (variable(first).empty()) return {};
  return text(kind, "-", variable(first), "-", variable(second));
}

// Names the step of srun if its tasks are the ranks. A batch script has a job but no such step. Other launchers, which
// a script or a step starts, make worlds of their own.
std::string slurm_name(int64_t size) {
  if (variable("SLURM_STEP_NUM_TASKS") != std::to_string(size)) return {};
  return pair_name("slurm", "SLURM_JOB_ID", "SLURM_STEP_ID");
}

// Removes a number of up to nine digits from the front of `text` and returns it; below zero: there is none.
int64_t take_number(std::string_view& text) {
  constexpr size_t digits_max = 9;  // products of two of them are no trouble
  const std::string_view head = text.substr(0, digits_max);
  int64_t number = -1;
  const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), number);
  if (error != std::errc{} || number < 0) return -1;
  text.remove_prefix(static_cast<size_t>(end - head.data()));
  return number;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Returns a hash of a name as 16 hexadecimal digits (FNV-1a, 64 bits).
std::string hash_text(std::string_view name) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char letter : name) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100'0000'01b3;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016lx", static_cast<unsigned long>(hash));
  return digits;
}

std::string board_name(std::string_view prefix, std::string_view job) {
  return text("spinloom-mpi-", getuid(), "-", hash_text(prefix), "-", hash_text(job));
}

}  // namespace

std::string world_name(std::string_view prefix, int64_t size) {
  // PMIx counts its namespaces for each launcher; the launcher's address tells two of them apart.
  std::string job = pair_name("pmix", "PMIX_NAMESPACE", "PMIX_SERVER_URI2");
  if (job.empty()) job = hydra_name();
  if (job.empty()) job = slurm_name(size);
  if (job.empty()) job = pair_name("pals", "PALS_APID", "PALS_APPNUM");
  if (job.empty()) return {};
  return board_name(prefix, text(job, "-of-", size));
}

std::string lone_name(std::string_view prefix) {
  return board_name(prefix, text("alone-", getpid(), "-", start_time_of(getpid())));
}

uint32_t tasks_of_node(std::string_view list, int64_t node, int64_t size) {
  int64_t nodes = 0;
  int64_t tasks = 0;
  int64_t node_tasks = 0;
  do {
    const int64_t each = take_number(list);
    int64_t times = 1;
    if (take_word(list, "(x") && ((times = take_number(list)) < 1 || !take_word(list, ")"))) return 0;
    if (each < 0) return 0;
    if (node >= nodes && node < nodes + times) node_tasks = each;
    nodes += times;
    tasks += each * times;
    if (tasks > size) return 0;
  } while (take_word(list, ","));
  return list.empty() && tasks == size ? static_cast<uint32_t>(node_tasks) : 0;
}

uint32_t local_ranks(int64_t size) {
  // Hydra, Open MPI, MVAPICH2, and PALS with Cray's PMI set these variables. They come first: a launcher that Slurm
  // starts, once on each node, passes its own Slurm variables on to the ranks.
  for (const char* const name :
       {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE"}) {
    std::string_view value = variable(name);
    if (const int64_t ranks = take_number(value); ranks > 0 && ranks <= size) return static_cast<uint32_t>(ranks);
  }
  std::string_view node = variable("SLURM_NODEID");
  const int64_t number = take_number(node);
  if (number < 0) return 0;
  for (const char* const name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    if (const uint32_t tasks = tasks_of_node(variable(name), number, size); tasks != 0) return tasks;
  }
  return 0;
}

std::string foreign_launcher() {
  const auto number_of = [](const char* name) {
    std::string_view value = variable(name);
    return take_number(value);
  };
  int64_t size = -1;
  for (const char* const name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    const int64_t launcher_size = number_of(name);
    if (launcher_size == 1) return {};
    if (size < 0) size = launcher_size;
  }
  int64_t rank = -1;  // Open MPI sets PMIX_RANK itself where it finds no launcher
  for (const char* const name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (rank < 0) rank = number_of(name);
  }
  if (rank != (size > 0 ? 0 : 1)) return {};
  return text(
      "MPI_COMM_WORLD has one rank only, but the launcher has started ",
      size > 0 ? std::to_string(size) : std::string("several"),
      ": it is the launcher of another MPI than the program's. Start the program by the mpiexec of its own MPI");
}

}  // namespace spinloom::mpi
