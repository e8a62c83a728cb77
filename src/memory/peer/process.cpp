#include "memory/peer/process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

namespace spinloom::peer {
namespace {

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      alive_ns_(other.alive_ns_.exchange(INT64_MIN / 2)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(descriptor_, other.descriptor_);
  alive_ns_ = other.alive_ns_.exchange(alive_ns_);
  return *this;
}

Process::~Process() {
  if (descriptor_ >= 0) close(descriptor_);
}

int Process::open(int64_t id) {
  Process opened;
  opened.descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(id), 0));
  if (opened.descriptor_ < 0) return errno;
  opened.id_ = id;
  *this = std::move(opened);
  return 0;
}

bool Process::is_alive() const {
  const int64_t now = now_ns();
  if (now - alive_ns_.load(std::memory_order_relaxed) < alive_valid_ns) return true;
  pollfd end{descriptor_, POLLIN, 0};
  if (descriptor_ < 0 || poll(&end, 1, 0) != 0) return false;
  alive_ns_.store(now, std::memory_order_relaxed);
  return true;
}

}  // namespace spinloom::peer
