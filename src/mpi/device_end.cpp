#include "mpi/device_end.hpp"

#include "mpi/device_watch.hpp"

namespace spinloom::mpi {
namespace {

uint64_t key_of_room(const void* room) { return reinterpret_cast<uintptr_t>(room); }

}  // namespace

DeviceEnd::DeviceEnd(int ordinal, void* buffer, std::vector<DeviceBlock> blocks, DeviceMoves::Room room, Use use)
    : ordinal_(ordinal), buffer_(buffer), blocks_(std::move(blocks)), room_(std::move(room)), use_(use) {}

Result<std::shared_ptr<DeviceEnd>> DeviceEnd::make(int ordinal, void* buffer, std::vector<DeviceBlock> blocks,
                                                   int64_t room_bytes, Use use) {
  SPL_ASSIGN(DeviceMoves::Room room, DeviceMoves::of_process().room(ordinal, room_bytes));
  std::shared_ptr<DeviceEnd> end(new DeviceEnd(ordinal, buffer, std::move(blocks), std::move(room), use));
  if (end->is_packed()) DeviceEnds::of_process().add(end);
  return end;
}

DeviceEnd::~DeviceEnd() {
  if (is_packed()) DeviceEnds::of_process().remove(room());
}

Status DeviceEnd::check() const {
  const DeviceBlock& first = blocks_.front();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): MPI_BOTTOM and a type of addresses
  const auto* const address =
      reinterpret_cast<const void*>(reinterpret_cast<intptr_t>(buffer_) + first.offset + first.form->true_lb);
  SPL_ASSIGN(const DeviceWatch::Owner owner, DeviceWatch::of_process().owner(address));
  if (owner.ordinal == ordinal_) return {};
  return fail(Code::invalid, "the memory of device ", ordinal_, " at ", buffer_,
              " was freed while a call had it as a buffer");
}

Status DeviceEnd::await() const {
  SPL_TRY(check());
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal_));
  return device.synchronise();
}

Status DeviceEnd::fill() {
  if (!is_read()) return {};
  filled_ = check();
  if (filled_.ok()) filled_ = DeviceMoves::of_process().pack(ordinal_, buffer_, blocks_, room_.data());
  return filled_;
}

Status DeviceEnd::land(int64_t bytes) {
  SPL_TRY(filled_);
  if (use_ == Use::reads || std::exchange(is_in_place_, false)) return {};
  SPL_TRY(check());
  DeviceMoves& moves = DeviceMoves::of_process();
  return bytes >= 0 && is_packed() ? moves.unpack_part(ordinal_, room_.data(), block(), bytes, buffer_)
                                   : moves.unpack(ordinal_, room_.data(), blocks_, buffer_);
}

DeviceEnds& DeviceEnds::of_process() {
  static auto* const ends = new DeviceEnds;  // calls come until the very end of the process
  return *ends;
}

std::shared_ptr<DeviceEnd> DeviceEnds::find(const void* room) {
  if (!any()) return nullptr;
  const std::lock_guard lock(mutex_);
  const std::weak_ptr<DeviceEnd>* const found = ends_.find(key_of_room(room));
  return found == nullptr ? nullptr : found->lock();
}

void DeviceEnds::add(const std::shared_ptr<DeviceEnd>& end) {
  const std::lock_guard lock(mutex_);
  ends_.put(key_of_room(end->room()), end);
  count_.store(ends_.size(), std::memory_order_relaxed);
}

// Whoever gets the room next is added after it was given back.
void DeviceEnds::remove(const void* room) {
  const std::lock_guard lock(mutex_);
  ends_.erase(key_of_room(room));
  count_.store(ends_.size(), std::memory_order_relaxed);
}

}  // namespace spinloom::mpi
