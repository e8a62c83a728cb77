#include "memory/gpu/pair_process.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace spinloom::gpu {
namespace {

// Returns the time when a process started, field 22 of /proc/PID/stat, counted behind the name in parentheses; 0 where
// it cannot be read.
uint64_t start_ticks_of(uint64_t id) {
  std::ifstream file(text("/proc/", id, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return std::strtoull(field.c_str(), nullptr, 10);
}

}  // namespace

PairProcess PairProcess::current() {
  PairProcess process;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string machine;
  std::getline(file, machine);
  std::strncpy(process.machine, machine.c_str(), sizeof process.machine - 1);
  struct stat namespace_status{};
  if (stat("/proc/self/ns/pid", &namespace_status) == 0) process.id_space = namespace_status.st_ino;
  process.id = static_cast<uint64_t>(getpid());
  process.start_ticks = start_ticks_of(process.id);
  return process;
}

bool PairProcess::same_machine(const PairProcess& other) const {
  return machine[0] != 0 && std::strncmp(machine, other.machine, sizeof machine) == 0;
}

PairWatch::PairWatch(const PairProcess& peer) {
  const PairProcess current = PairProcess::current();
  if (!current.same_machine(peer) || current.id_space != peer.id_space || peer.start_ticks == 0) return;
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(peer.id), 0));
  // The id may belong to another process by now: then the peer has ended, which the channel says.
  if (descriptor_ >= 0 && start_ticks_of(peer.id) != peer.start_ticks) {
    close(descriptor_);
    descriptor_ = -1;
  }
}

PairWatch& PairWatch::operator=(PairWatch&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

PairWatch::~PairWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool PairWatch::ended() const {
  if (descriptor_ < 0) return false;
  pollfd polled{descriptor_, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

}  // namespace spinloom::gpu
