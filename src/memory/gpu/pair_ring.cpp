#include "memory/gpu/pair_ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/private_folder.hpp"
#include "memory/gpu/device_state.hpp"

namespace spinloom::gpu {
namespace {

constexpr size_t ring_head_bytes = 4096;
constexpr unsigned register_everywhere = 1 | 2;  // portable, mapped

}  // namespace

struct PairRing::Head {
  uint64_t token;
  Lane lanes[2];
};

Result<PairRing> PairRing::map(const Device& device, const PairRingShape& shape, const std::string& name,
                               bool creates) {
  static_assert(sizeof(Head) <= ring_head_bytes);
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "counters lie in memory of two processes");
  PairRing ring;
  ring.state_ = device.shared_state();
  ring.shape_ = shape;
  ring.name_ = name;
  ring.bytes_ = ring_head_bytes + 2 * shape.piece_bytes * shape.pieces;
  const int file = shm_open(name.c_str(), O_RDWR | O_CLOEXEC | (creates ? O_CREAT | O_EXCL : 0), S_IRUSR | S_IWUSR);
  if (file < 0) return fail(Code::environment, "shared memory ", name, ": ", std::strerror(errno));
  ring.is_named_ = creates;
  int error = creates ? posix_fallocate(file, 0, static_cast<off_t>(ring.bytes_)) : 0;
  struct stat status{};
  if (error == 0 && fstat(file, &status) != 0) error = errno;
  if (error == 0 && !is_this_user(status.st_uid)) error = EPERM;
  if (error == 0 && status.st_size != static_cast<off_t>(ring.bytes_)) error = EINVAL;
  void* const start = error != 0 ? MAP_FAILED : mmap(nullptr, ring.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (error == 0 && start == MAP_FAILED) error = errno;
  close(file);
  if (error != 0) {
    return fail(Code::environment, "shared memory ", name, " of ", ring.bytes_, " bytes: ", std::strerror(error),
                error == ENOSPC ? "; /dev/shm is full" : "");
  }
  ring.start_ = static_cast<std::byte*>(start);
  const Device::State& state = device.state();
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  SPL_CUDA(*state.driver, state.driver->host_register(start, ring.bytes_, register_everywhere), "to pin ", ring.bytes_,
           " bytes of shared memory");
  ring.is_pinned_ = true;
  DeviceAddress address = 0;
  if (state.driver->host_address(&address, start, 0) == 0) ring.device_start_ = reinterpret_cast<std::byte*>(address);
  return ring;
}

Result<PairRing> PairRing::make(const Device& device, const PairRingShape& shape, uint64_t token) {
  SPL_ASSIGN(PairRing ring, map(device, shape, text("/spinloom-gpu-", getpid(), "-", token), true));
  ring.head().token = token;
  return ring;
}

Result<PairRing> PairRing::join(const Device& device, const PairRingShape& shape, uint64_t token,
                                const std::string& name) {
  SPL_ASSIGN(PairRing ring, map(device, shape, name, false));
  if (ring.head().token != token) return fail(Code::environment, "shared memory ", name, " is another pair's");
  return ring;
}

PairRing::~PairRing() {
  unlink();
  if (start_ == nullptr) return;
  if (is_pinned_) {
    const ContextGuard guard(*state_->driver, state_->context);
    (void)state_->driver->host_unregister(start_);
  }
  munmap(start_, bytes_);
}

void PairRing::unlink() {
  if (is_named_) (void)shm_unlink(name_.c_str());
  is_named_ = false;
}

void PairRing::swap(PairRing& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(shape_, other.shape_);
  std::swap(name_, other.name_);
  std::swap(is_named_, other.is_named_);
  std::swap(is_pinned_, other.is_pinned_);
  std::swap(start_, other.start_);
  std::swap(device_start_, other.device_start_);
  std::swap(bytes_, other.bytes_);
}

PairRing::Head& PairRing::head() const { return *reinterpret_cast<Head*>(start_); }
PairRing::Lane& PairRing::lane(int number) const { return head().lanes[number]; }

size_t PairRing::place_of(int lane, uint64_t number) const {
  const uint64_t slot = static_cast<uint64_t>(lane) * shape_.pieces + number % shape_.pieces;
  return ring_head_bytes + slot * shape_.piece_bytes;
}

std::byte* PairRing::piece(int lane, uint64_t number) const { return start_ + place_of(lane, number); }

std::byte* PairRing::piece_on_device(int lane, uint64_t number) const {
  return device_start_ == nullptr ? nullptr : device_start_ + place_of(lane, number);
}

}  // namespace spinloom::gpu
