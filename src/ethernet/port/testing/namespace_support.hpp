// For tests and measurements: a network namespace for this process, with a pair of interfaces.
//
// Contract: enter_namespace() gives this process a network namespace of its own, as root or in a user namespace, and
//   returns why not where that is refused; it does so once. make_pair() makes nic0 and host0 anew, up and joined,
//   without addresses or IPv6. The namespace and all in it end with the process. Only tests and measurements include
//   this.
// Threads: one, and no others may have been started. Time: host time.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/result.hpp"

namespace spinloom::port::test {

inline bool put(const char* path, const std::string& words) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written = file >= 0 && write(file, words.data(), words.size()) == static_cast<ssize_t>(words.size());
  if (file >= 0) close(file);
  return written;
}

inline bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// "" when the process is in a namespace of its own.
inline const std::string& enter_namespace() {
  static const std::string reason = []() -> std::string {
    const uid_t user = getuid();
    const gid_t group = getgid();
    if (unshare(user == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      return text("network namespaces are refused here: ", std::strerror(errno));
    }
    if (user != 0 && !(put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", text("0 ", user, " 1")) &&
                       put("/proc/self/gid_map", text("0 ", group, " 1")))) {
      return "user namespaces are refused here";
    }
    if (!run("command -v ip")) return "there is no ip command (Debian: apt install iproute2)";
    return run("ip link set lo up") ? "" : "network interfaces cannot be changed here";
  }();
  return reason;
}

inline bool make_pair() {
  run("ip link delete nic0");
  return run("ip link add nic0 type veth peer name host0") && run("ip link set host0 addrgenmode none up") &&
         run("ip link set nic0 addrgenmode none up");
}

}  // namespace spinloom::port::test
