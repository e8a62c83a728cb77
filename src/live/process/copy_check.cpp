#include "live/process/copy_check.hpp"

#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/result.hpp"

namespace spinloom::process {
namespace {

constexpr int cap_sys_ptrace = 19;  // linux/capability.h

// The value of the line "NAME:\tVALUE" of /proc/self/status.
std::string status_line(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) != 0) continue;
    const size_t value = line.find_first_not_of(" \t", name.size() + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

// Called in a child: reads the other child's word; returns errno, or 0.
int read_word(pid_t other, const uint64_t& word) {
  uint64_t read_value = 0;
  const iovec local{&read_value, sizeof read_value};
  const iovec remote{const_cast<uint64_t*>(&word), sizeof word};
  if (process_vm_readv(other, &local, 1, &remote, 1, 0) != sizeof read_value) return errno != 0 ? errno : EIO;
  return read_value == word ? 0 : ESRCH;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

CopyFacts facts_of_this_process() {
  CopyFacts facts;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> facts.ptrace_scope;
  if (std::ifstream yama("/proc/sys/kernel/yama/ptrace_scope"); !yama) facts.ptrace_scope = -1;
  const std::string capabilities = status_line("CapEff");
  uint64_t effective = 0;
  std::from_chars(capabilities.data(), capabilities.data() + capabilities.size(), effective, 16);
  facts.can_ptrace = (effective >> cap_sys_ptrace & 1) != 0;
  facts.has_seccomp_filter = status_line("Seccomp") == "2";
  return facts;
}

CopyFacts check_copies() {
  CopyFacts facts = facts_of_this_process();
  const uint64_t word = 0x5350494e4c4f4f4d;
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) {
    facts.error = errno;
    return facts;
  }
  const pid_t target = fork();
  if (target == 0) {  // lives until nobody holds the other end
    close(pipe_ends[1]);
    char none = 0;
    while (read(pipe_ends[0], &none, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }
  const pid_t reader = target > 0 ? fork() : -1;
  if (reader == 0) _exit(read_word(target, word));
  facts.error = reader > 0 ? EIO : errno;
  close(pipe_ends[0]);
  if (reader > 0) {
    const int status = wait_for(reader);
    if (WIFEXITED(status)) facts.error = WEXITSTATUS(status);
  }
  close(pipe_ends[1]);
  if (target > 0) wait_for(target);
  return facts;
}

std::string explain(const CopyFacts& facts) {
  if (facts.error == 0) return "one copy: a receiver reads its sender's memory (process_vm_readv)";
  std::string outcome = text("two copies: process_vm_readv answers '", std::strerror(facts.error), "'");
  const bool yama = facts.ptrace_scope > 0 && !facts.can_ptrace;
  if (facts.error == ENOSYS) return outcome + "; this kernel was built without it (CONFIG_CROSS_MEMORY_ATTACH)";
  if (facts.error == ESRCH) {
    return outcome +
           "; the processes are in different process namespaces; cure: one for all of them (docker run --pid=host)";
  }
  if (facts.error != EPERM) return outcome;
  if (yama && facts.ptrace_scope == 3) {
    return outcome +
           "; kernel.yama.ptrace_scope is 3, which forbids it until the next boot; cure: boot with another value";
  }
  if (yama) {
    return text(outcome, "; kernel.yama.ptrace_scope is ", facts.ptrace_scope,
                ", which lets a process read its children only; cure: sysctl -w kernel.yama.ptrace_scope=0, or "
                "CAP_SYS_PTRACE");
  }
  if (facts.has_seccomp_filter) {
    return outcome + "; a seccomp filter, such as a container's, forbids it; cure: docker run --cap-add=SYS_PTRACE";
  }
  return outcome + "; the ranks belong to different users, or cannot be dumped; cure: start all of them as one user";
}

}  // namespace spinloom::process
