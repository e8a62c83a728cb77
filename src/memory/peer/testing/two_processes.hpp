// TwoProcesses - a peer process for tests: a forked child with bytes of its own at addresses that both processes
// know.
//
// Contract: Pages are made before the Child; the child's `prepare` writes its own copy of them. memory_of() is the
//   child's memory, identified by a word that both processes have.
// Threads: none but the test's. Time: none.
#pragma once

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "memory/peer/peer_memory.hpp"

namespace spinloom::peer {

inline constexpr uint64_t page = 4096;
inline constexpr uint64_t known_value = 0x1234'5678'9abc'def0;

inline uint64_t address_of(const void* start) { return reinterpret_cast<uint64_t>(start); }

// Memory that parent and child have at the same address, each with bytes of its own.
struct Pages {
  explicit Pages(uint64_t wanted) : bytes(wanted) {
    void* const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SPL_ASSERT(mapping != MAP_FAILED, "no memory");
    start = static_cast<uint8_t*>(mapping);
  }
  ~Pages() { munmap(start, bytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] uint64_t address(uint64_t offset = 0) const { return address_of(start) + offset; }

  uint8_t* start = nullptr;
  uint64_t bytes;
};

// A child that has prepared its memory and lives until its end is asked for.
class Child {
 public:
  explicit Child(const std::function<void()>& prepare, pid_t number = 0) {
    int ready[2];
    SPL_ASSERT(pipe2(ready, O_CLOEXEC) == 0, errno);
    id_ = number == 0 ? fork() : fork_as(number);
    if (id_ == 0) {
      prepare();
      if (write(ready[1], "", 1) == 1) pause();
      _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    came_up_ = id_ > 0 && ::read(ready[0], &byte, 1) == 1;
    close(ready[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  [[nodiscard]] bool came_up() const { return came_up_; }
  void end() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    id_ = 0;
  }

 private:
  static pid_t fork_as(pid_t number) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = address_of(&number);
    arguments.set_tid_size = 1;
    return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  }

  pid_t id_ = 0;
  bool came_up_ = false;
};

inline PeerMemory memory_of(const Child& child, const uint64_t* word) {
  Process process;
  SPL_ASSERT(process.open(child.id()) == 0, child.id());
  PeerMemory memory(std::move(process), {address_of(word), known_value});
  SPL_ASSERT(memory.try_reading().ok(), memory.describe());
  return memory;
}

// The seed of a random test.
inline uint64_t seed_of(uint64_t usual) {
  const char* const variable = std::getenv("SPINLOOM_TEST_SEED");
  return variable == nullptr ? usual : std::strtoull(variable, nullptr, 10);
}

// The addresses of all bytes of a list.
inline std::vector<uint64_t> bytes_at(const std::vector<Block>& blocks) {
  std::vector<uint64_t> addresses;
  for (const Block& block : blocks) {
    for (uint64_t i = 0; i < block.length; ++i) addresses.push_back(block.address + i);
  }
  return addresses;
}

// The initial bytes of a peer's pages.
inline uint8_t theirs_at(uint64_t offset) { return static_cast<uint8_t>(offset * 131 + (offset >> 8) + 7); }

inline void fill_theirs(const Pages& pages) {
  for (uint64_t i = 0; i < pages.bytes; ++i) pages.start[i] = theirs_at(i);
}

}  // namespace spinloom::peer
