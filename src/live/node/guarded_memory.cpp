#include "live/node/guarded_memory.hpp"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <iterator>
#include <mutex>

namespace spinloom::live {
namespace {

constexpr uint64_t touched_page_bytes = 4096;  // the smallest pages that there are
constexpr int guarded_signals[] = {SIGSEGV, SIGBUS};

// A thread's touch that is under way, if there is one. The signal handler reads it and must not allocate, so its room
// is there from the start.
struct Touch {
  sigjmp_buf* back = nullptr;
  uint32_t calls = 0;
  bool usable = false;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Touch own_touch{};

struct sigaction handlers_before[std::size(guarded_signals)];
bool guard_installed = false;
std::mutex guard_installing;

// Ends the touch that is under way, or does what the earlier handler would have done. After a touch the signals are
// blocked that were blocked before, because ThreadSanitizer blocks all of them in handlers.
void on_fault(int number, siginfo_t* info, void* context) {
  if (own_touch.back != nullptr) {
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(*own_touch.back, 1);
  }
  const struct sigaction& earlier = handlers_before[number == guarded_signals[0] ? 0 : 1];
  if ((earlier.sa_flags & SA_SIGINFO) != 0) return earlier.sa_sigaction(number, info, context);
  if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) return earlier.sa_handler(number);
  if (info->si_code <= 0 && earlier.sa_handler == SIG_IGN) return;  // a process has sent it; it is no fault
  sigaction(number, &earlier, nullptr);
  if (info->si_code <= 0) raise(number);
  // Otherwise the instruction faults once more, without us.
}

// True if our handlers are there and faults of this thread reach them. Installs the handlers at the first call.
bool guard_works() {
  const std::lock_guard inside(guard_installing);
  for (size_t i = 0; i < std::size(guarded_signals) && !guard_installed; ++i) {
    struct sigaction ours{};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (sigaction(guarded_signals[i], &ours, &handlers_before[i]) != 0) return false;
    guard_installed = i + 1 == std::size(guarded_signals);
  }
  sigset_t blocked;
  if (pthread_sigmask(SIG_SETMASK, nullptr, &blocked) != 0) return false;
  for (const int number : guarded_signals) {
    struct sigaction now{};
    const bool here = sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0;
    if (!here || now.sa_sigaction != on_fault || sigismember(&blocked, number) != 0) return false;
  }
  return true;
}

// Touches a byte. The byte may not exist, or another thread may be using it.
[[gnu::no_sanitize("address", "thread", "undefined")]] void touch_byte(uint64_t address, nic::Access access) {
  if (access == nic::Access::read) {
    [[maybe_unused]] const uint8_t read = *reinterpret_cast<const volatile uint8_t*>(address);
    return;
  }
  // An exchange that finds another value writes nothing that matters, and is tried again.
  auto* const byte = reinterpret_cast<uint8_t*>(address);
  uint8_t value = *const_cast<const volatile uint8_t*>(byte);
  while (!__atomic_compare_exchange_n(byte, &value, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

}  // namespace

bool GuardedMemory::touches() { return own_touch.usable; }

bool GuardedMemory::reaches(const void* start, uint64_t length, nic::Access access) {
  const auto first = reinterpret_cast<uint64_t>(start);
  if (length == 0) return true;
  if (length - 1 > UINT64_MAX - first) return false;
  if (own_touch.calls++ % look_every == 0) own_touch.usable = guard_works();
  if (!own_touch.usable) return probed_.reaches(start, length, access);
  sigjmp_buf back;
  if (sigsetjmp(back, 0) != 0) {
    own_touch.back = nullptr;
    return false;
  }
  own_touch.back = &back;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const uint64_t last_page = (first + (length - 1)) / touched_page_bytes;
  touch_byte(first, access);
  for (uint64_t page = first / touched_page_bytes + 1; page <= last_page; ++page)
    touch_byte(page * touched_page_bytes, access);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  own_touch.back = nullptr;
  return true;
}

}  // namespace spinloom::live
