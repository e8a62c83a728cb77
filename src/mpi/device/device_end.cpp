#include "mpi/device/device_end.hpp"

#include <tuple>

#include "mpi/entry/device_watch.hpp"

namespace spinloom::mpi {
namespace {

uint64_t key_of_room(const void* room) { return reinterpret_cast<uintptr_t>(room); }

}  // namespace

DeviceEnd::DeviceEnd(int ordinal, void* buffer, std::vector<DeviceBlock> blocks, DeviceMoves::Room room, Use use)
    : ordinal_(ordinal), buffer_(buffer), blocks_(std::move(blocks)), room_(std::move(room)), use_(use) {}

Result<std::shared_ptr<DeviceEnd>> DeviceEnd::make(int ordinal, void* buffer, std::vector<DeviceBlock> blocks,
                                                   int64_t room_bytes, Use use, DeviceMoves::Where where) {
  DeviceMoves& moves = DeviceMoves::of_process();
  auto found = moves.room(ordinal, room_bytes, where);
  // If the device has no memory left, the room lies in the host.
  if (!found && where == DeviceMoves::Where::device) found = moves.room(ordinal, room_bytes);
  SPL_ASSIGN(DeviceMoves::Room room, std::move(found));
  std::shared_ptr<DeviceEnd> end(new DeviceEnd(ordinal, buffer, std::move(blocks), std::move(room), use));
  std::ignore = end->note_allocation();  // fill() or land() reports the Error
  if (end->is_packed()) DeviceEnds::of_process().add(end);
  return end;
}

std::shared_ptr<DeviceEnd> DeviceEnd::as_it_is(int ordinal, void* buffer, Use use) {
  return std::shared_ptr<DeviceEnd>(new DeviceEnd(ordinal, buffer, {}, {}, use));
}

DeviceEnd::~DeviceEnd() {
  if (is_packed()) DeviceEnds::of_process().remove(room());
}

// The number of the allocation in which the buffer lies now; 0: it is no memory of the device.
Result<uint64_t> DeviceEnd::allocation_now() const {
  const DeviceBlock& first = blocks_.front();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): MPI_BOTTOM and a type of addresses
  const auto* const address =
      reinterpret_cast<const void*>(reinterpret_cast<intptr_t>(buffer_) + first.offset + first.form->true_lb);
  SPL_ASSIGN(const DeviceWatch::Owner owner, DeviceWatch::of_process().owner(address));
  return owner.ordinal == ordinal_ ? owner.number : 0;
}

Status DeviceEnd::note_allocation() {
  SPL_ASSIGN(const uint64_t now, allocation_now());
  if (now == 0) return freed();
  allocation_ = now;
  return {};
}

Status DeviceEnd::check() const {
  SPL_ASSIGN(const uint64_t now, allocation_now());
  return now != 0 && now == allocation_ ? Status{} : freed();
}

Status DeviceEnd::freed() const {
  return fail(Code::invalid, "the memory of device ", ordinal_, " at ", buffer_,
              " was freed while a call had it as a buffer");
}

Status DeviceEnd::await() {
  filled_ = {};
  is_in_place_ = false;
  SPL_TRY(note_allocation());
  return DeviceMoves::of_process().wait(ordinal_);
}

Status DeviceEnd::fill() {
  DeviceMoves& moves = DeviceMoves::of_process();
  is_in_place_ = false;  // a persistent call before this one may have failed after its bytes had come
  if (is_as_it_is()) {  // even if the call only writes: kernels on the default stream may still read the buffer
    moves.count_as_they_are();
    return moves.wait(ordinal_);
  }
  const Status noted = note_allocation();
  if (!is_read()) return {};
  filled_ = noted;
  if (filled_.ok()) filled_ = moves.pack(ordinal_, buffer_, blocks_, room_.data());
  if (is_on_device()) moves.count_within();
  return filled_;
}

Status DeviceEnd::land(int64_t bytes) {
  SPL_TRY(filled_);
  if (use_ == Use::reads || is_as_it_is() || std::exchange(is_in_place_, false)) return {};
  SPL_TRY(check());
  DeviceMoves& moves = DeviceMoves::of_process();
  if (is_on_device()) moves.count_within();
  return bytes >= 0 && is_packed() ? moves.unpack_part(ordinal_, room_.data(), block(), bytes, buffer_)
                                   : moves.unpack(ordinal_, room_.data(), blocks_, buffer_);
}

// If only the range of a buffer is known, it has one block: then each part is the whole.
std::span<const DeviceBlock> DeviceEnd::part(size_t i) const {
  return i < blocks_.size() ? std::span(blocks_).subspan(i, 1) : std::span(blocks_);
}

Status DeviceEnd::fill_part(size_t i) const {
  SPL_TRY(check());
  return DeviceMoves::of_process().pack(ordinal_, buffer_, part(i), room_.data());
}

Status DeviceEnd::land_part(size_t i) const {
  SPL_TRY(check());
  return DeviceMoves::of_process().unpack(ordinal_, room_.data(), part(i), buffer_);
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

// The room is given back after this, so no other end can have been added under its address yet.
void DeviceEnds::remove(const void* room) {
  const std::lock_guard lock(mutex_);
  ends_.erase(key_of_room(room));
  count_.store(ends_.size(), std::memory_order_relaxed);
}

}  // namespace spinloom::mpi
