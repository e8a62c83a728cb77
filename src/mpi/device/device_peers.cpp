#include "mpi/device/device_peers.hpp"

namespace spinloom::mpi {
namespace {

constexpr size_t sign_bytes = 256;

}  // namespace

void DevicePeers::keep_why(const Error& error) {
  if (why_.empty()) why_ = error.message;
}

std::string DevicePeers::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void DevicePeers::open_first(int ordinal) {
  const std::lock_guard lock(mutex_);
  if (this->ordinal() >= 0) return;
  tried_.resize(board_.size());
  if (const Status done = put_up_sign(ordinal); !done.ok()) keep_why(done.error());
  ordinal_.store(ordinal, std::memory_order_release);
}

Status DevicePeers::put_up_sign(int ordinal) {
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal));
  SPL_ASSIGN(sign_, gpu::Memory::device(device, sign_bytes));
  DeviceSign& sign = board_.device_sign(board_.rank());
  sign.token = board_.secret()[0] ^ (uint64_t{board_.rank()} + 1);
  SPL_TRY(gpu::copy_bytes(device, sign_.data(), &sign.token, sizeof sign.token, nullptr));
  SPL_TRY(device.synchronise());
  SPL_ASSIGN(sign.memory, gpu::export_memory(sign_.data()));
  sign.is_up.store(1, std::memory_order_release);
  board_.device_signs().fetch_add(1, std::memory_order_acq_rel);
  return {};
}

void DevicePeers::notice_now() {
  const std::lock_guard lock(mutex_);
  noticed_.store(board_.device_signs().load(std::memory_order_acquire));
  for (uint32_t rank = 0; rank < board_.size(); ++rank) {
    const DeviceSign& sign = board_.device_sign(rank);
    if (rank == board_.rank() || tried_[rank] || sign.is_up.load(std::memory_order_acquire) == 0) continue;
    tried_[rank] = true;
    const Status read = read_sign(sign);
    if (read.ok()) {
      board_.maps_device(board_.rank(), rank).store(1, std::memory_order_release);
    } else {
      keep_why(read.error());
    }
  }
}

Status DevicePeers::read_sign(const DeviceSign& sign) const {
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal()));
  SPL_ASSIGN(const gpu::PeerMemory there, gpu::PeerMemory::open_uncached(device, sign.memory));
  uint64_t found = 0;
  SPL_TRY(gpu::copy_bytes(device, &found, there.data(), sizeof found, nullptr));
  SPL_TRY(device.synchronise());
  if (found == sign.token) return {};
  return fail(Code::environment, "device memory that another rank has exported holds other bytes here");
}

void DevicePeers::give_up(uint32_t sender, const Error& error) {
  const std::lock_guard lock(mutex_);
  board_.maps_device(board_.rank(), sender).store(0, std::memory_order_release);
  keep_why(error);
}

}  // namespace spinloom::mpi
