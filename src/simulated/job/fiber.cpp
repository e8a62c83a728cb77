#include "simulated/job/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace spinloom::job {
namespace {

constexpr size_t guard_bytes = 1 << 20;  // address space only

}  // namespace

Result<std::unique_ptr<Fiber>> Fiber::create(size_t stack_bytes, std::function<void()> body) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (stack_bytes + page - 1) / page * page + guard_bytes;
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0) {
    return fail(Code::environment, "no memory for a stack of ", stack_bytes, " B (--stack): ", std::strerror(errno));
  }
  return std::unique_ptr<Fiber>(new Fiber(memory, bytes, std::move(body)));
}

Fiber::Fiber(void* memory, size_t bytes, std::function<void()> body)
    : memory_(memory), bytes_(bytes), body_(std::move(body)) {
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = memory_;
  inside_.uc_stack.ss_size = bytes_;
  inside_.uc_link = &outside_;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::start), 2, static_cast<unsigned int>(self >> 32),
              static_cast<unsigned int>(self));
}

Fiber::~Fiber() { munmap(memory_, bytes_); }

// Takes an address in two halves, because makecontext passes only ints.
void Fiber::start(unsigned int high, unsigned int low) {
  auto* self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  self->body_();
  self->ended_ = true;
}

void Fiber::resume() {
  SPL_ASSERT(!ended_, "a fiber that has ended");
  const int outer = errno;
  errno = errno_;
  swapcontext(&outside_, &inside_);
  errno_ = errno;
  errno = outer;
}

void Fiber::yield() {
  const int inner = errno;
  swapcontext(&inside_, &outside_);
  errno = inner;
}

bool Fiber::guards(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  const auto* low = static_cast<const char*>(memory_);
  return at >= low && at < low + guard_bytes;
}

}  // namespace spinloom::job
