#include "mpi/ship.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace spinloom::mpi {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Status Ship::begin(const std::string& name, uint32_t rank, uint32_t size, uint32_t local, const Settings& settings) {
  staging_.limit(settings.staging_bytes);
  chunk_bytes_ = settings.chunk_bytes;
  for (uint32_t slot = Board::slots; slot > 0; --slot) idle_.push_back(slot - 1);
  in_use_.reserve(Board::slots);
  return board_.join(name, rank, size, local);
}

// Slots and buffers of the messages that their receivers have taken.
void Ship::take_back() {
  const auto taken = [this](const InUse& one) {
    const Slot& slot = board_.slot(board_.rank(), one.slot);
    if (slot.done.load(std::memory_order_acquire) != slot.serial.load(std::memory_order_relaxed)) return false;
    staging_.give(one.buffer);
    idle_.push_back(one.slot);
    return true;
  };
  in_use_.erase(std::remove_if(in_use_.begin(), in_use_.end(), taken), in_use_.end());
}

std::optional<Parcel> Ship::prepare(int64_t bytes) {
  take_back();
  const Staging::Buffer buffer = idle_.empty() ? Staging::Buffer{} : staging_.take(static_cast<uint64_t>(bytes));
  if (buffer.start == nullptr) {
    ++totals_.refused;
    return std::nullopt;
  }
  const uint32_t number = idle_.back();
  idle_.pop_back();
  in_use_.push_back({number, buffer});
  ++totals_.sent;
  totals_.sent_bytes += static_cast<uint64_t>(bytes);

  Slot& slot = board_.slot(board_.rank(), number);
  Record record;
  record.secret = board_.secret();
  record.sender = board_.rank();
  record.slot = number;
  record.serial = ++serial_;
  record.bytes = static_cast<uint64_t>(bytes);
  record.address = reinterpret_cast<uint64_t>(buffer.start);
  std::memcpy(slot.record, &record, sizeof record);
  slot.ready.store(0, std::memory_order_relaxed);
  slot.serial.store(record.serial, std::memory_order_release);
  return Parcel{&slot, number, buffer.start};
}

void Ship::load(const Parcel& parcel, const Message& message) const {
  const int64_t bytes = message.bytes();
  for (int64_t first = 0; first < bytes;) {
    const int64_t last = std::min(bytes, first + chunk_bytes_);
    message.pack({first, last}, parcel.packed + first);
    parcel.slot->ready.store(static_cast<uint64_t>(last), std::memory_order_release);
    first = last;
  }
}

void Ship::abandon(const Parcel& parcel) {
  parcel.slot->done.store(parcel.slot->serial.load(std::memory_order_relaxed), std::memory_order_release);
}

std::optional<Record> Ship::read(const void* bytes, int64_t length) const {
  if (!Record::may_be(length)) return std::nullopt;
  const Record record = Record::read(bytes);
  if (record.secret != board_.secret() || record.slot >= Board::slots) return std::nullopt;
  if (board_.at(record.sender, record.address, record.bytes) == nullptr) return std::nullopt;
  const Slot& slot = board_.slot(record.sender, record.slot);
  if (slot.serial.load(std::memory_order_acquire) != record.serial) return std::nullopt;
  return record;
}

void Ship::drop(const Record& record) {
  board_.slot(record.sender, record.slot).done.store(record.serial, std::memory_order_release);
}

Status Ship::land(const Record& record, const Message& into) {
  const uint8_t* const packed = board_.at(record.sender, record.address, record.bytes);
  Slot& slot = board_.slot(record.sender, record.slot);
  const auto bytes = static_cast<int64_t>(record.bytes);
  constexpr int tries_before_yield = 2'000;
  int tries = 0;
  for (int64_t first = 0; first < bytes;) {
    const auto ready = static_cast<int64_t>(slot.ready.load(std::memory_order_acquire));
    const int64_t last = std::min(ready, bytes);
    if (last <= first) {
      pause_briefly();
      if (++tries < tries_before_yield) continue;
      if (!board_.lives(record.sender)) {
        return fail(Code::environment, "rank ", record.sender, " ended while it sent a message");
      }
      sched_yield();
      continue;
    }
    tries = 0;
    into.unpack({first, last}, packed + first);
    first = last;
  }
  slot.done.store(record.serial, std::memory_order_release);
  totals_.landed.fetch_add(1, std::memory_order_relaxed);
  totals_.landed_bytes.fetch_add(record.bytes, std::memory_order_relaxed);
  return {};
}

}  // namespace spinloom::mpi
