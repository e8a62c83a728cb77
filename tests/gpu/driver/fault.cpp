#include "fault.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "memory.hpp"

namespace fake {
namespace {

constexpr int stack_max = 48;

// Writes a line without stdio and malloc, because the thread may have been within them.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  const auto length = static_cast<size_t>(std::clamp<int>(wanted, 0, sizeof line - 2));
  line[length] = '\n';
  if (write(STDERR_FILENO, line, length + 1) < 0) _exit(86);
}

// Writes which mapping holds the address, or is the next one behind it, and the one before that.
void say_mappings(uint64_t address) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  char line[512];
  char before[sizeof line] = "";
  size_t length = 0;
  char letter = 0;
  while (file >= 0 && read(file, &letter, 1) == 1) {
    if (letter != '\n') {
      if (length < sizeof line - 1) line[length++] = letter;
      continue;
    }
    line[length] = 0;
    length = 0;
    uint64_t first = 0;
    uint64_t last = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64, &first, &last) != 2) continue;
    if (last > address) {
      say("  mapping before: %s", before);
      say("  mapping %s: %s", first <= address ? "there" : "behind", line);
      break;
    }
    std::memcpy(before, line, sizeof line);
  }
  if (file >= 0) close(file);
}

void say_allocation(const char* where, const Allocation& one, uint64_t address) {
  say("  %s allocation %" PRIu64 " of %s, byte %" PRIu64 " of %zu%s", where, one.number,
      one.is_device ? "the device" : "the host", address - one.start, one.bytes,
      one.is_import ? ", which another process has made" : "");
}

void die(int number, siginfo_t* info, void*) {
  signal(number, SIG_DFL);
  tell_fault(*info);
  raise(number);
}

}  // namespace

void tell_faults() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs
  struct sigaction now{};
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction action{};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = &die;
  sigaction(SIGSEGV, &action, nullptr);
}

void tell_fault(const siginfo_t& info) {
  const auto address = reinterpret_cast<uint64_t>(info.si_addr);
  say("the driver for tests: SIGSEGV in process %d, thread %d, at %p: %s", getpid(), gettid(), info.si_addr,
      info.si_code == SEGV_ACCERR ? "memory that is closed or read-only" : "no memory");
  const Memory::Past past = Memory::all().past_of(address);
  if (!past.is_known) say("  another thread has the driver's memory in use");
  if (past.is_open) say("  the driver has opened its memory");
  if (past.now) say_allocation("in", *past.now, address);
  if (past.freed) say_allocation("in the freed", *past.freed, address);
  say_mappings(address);
  void* frames[stack_max];
  backtrace_symbols_fd(frames, backtrace(frames, stack_max), STDERR_FILENO);
}

}  // namespace fake
