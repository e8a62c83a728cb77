#include "mpi/ship.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/shared_heap.hpp"
#include "layout/copy.hpp"
#include "layout/transfer.hpp"
#include "mpi/cma.hpp"

namespace spinloom::mpi {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How a rank waits for another one: it looks often, then yields its core.
class Patience {
 public:
  // True after each yield.
  bool pause() {
    pause_briefly();
    constexpr int tries_before_yield = 2'000;
    if (++tries_ < tries_before_yield) return false;
    sched_yield();
    return true;
  }

 private:
  int tries_ = 0;
};

Status ended(const Record& record) {
  return fail(Code::environment, "rank ", record.sender, " ended while it sent a message");
}

// Copies the `bytes` packed bytes of a layout to the first bytes of a message.
Status copy_between(const layout::Source& from, const Message& into, int64_t bytes) {
  const Form& form = into.form();
  if (form.contiguous(into.count())) {
    const std::span<std::byte> run{into.buffer() + form.true_lb, static_cast<size_t>(bytes)};
    if (layout::pack_at_once(from.blob, from.count, from.base, run.data())) return {};
    return layout::pack(from.blob, from.count, from.base, 0, bytes, run);
  }
  if (form.layout && bytes % form.size == 0) {
    return layout::copy(from, {form.layout->blob(), bytes / form.size, into.buffer()});
  }
  // The message ends within an element.
  std::vector<std::byte> part(std::min<size_t>(static_cast<size_t>(bytes), 64 << 10));
  for (int64_t first = 0; first < bytes;) {
    const int64_t last = std::min(bytes, first + static_cast<int64_t>(part.size()));
    SPL_TRY(
        layout::pack(from.blob, from.count, from.base, first, last, {part.data(), static_cast<size_t>(last - first)}));
    into.unpack({first, last}, reinterpret_cast<const uint8_t*>(part.data()));
    first = last;
  }
  return {};
}

}  // namespace

Status Ship::begin(const std::string& name, uint32_t rank, uint32_t size, uint32_t local, const Settings& settings) {
  staging_.limit(settings.staging_bytes);
  chunk_bytes_ = settings.chunk_bytes;
  memoised_ = settings.memoised;
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

std::optional<Parcel> Ship::prepare(int64_t bytes, bool will_pack) {
  take_back();
  const auto wanted = static_cast<uint64_t>(bytes);
  Staging::Buffer buffer;
  if (!idle_.empty()) buffer = will_pack ? staging_.take(wanted) : staging_.reserve(wanted);
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
  slot.stage.store(Stage::packed, std::memory_order_relaxed);
  slot.serial.store(record.serial, std::memory_order_release);
  return Parcel{&slot, number, record.serial, buffer.start};
}

bool Ship::is_mapped(const Message& message) {
  const std::byte* first = nullptr;
  int64_t bytes = 0;
  return message.reach(first, bytes) && process_heap().shares(first, static_cast<size_t>(bytes));
}

bool Ship::publish(const Form& form) {
  static std::mutex mutex;  // receivers call this without the caller's lock
  const std::lock_guard lock(mutex);
  form.published.put(form.layout->blob().bytes());
  return form.published.address() != 0;
}

std::optional<Parcel> Ship::offer(const Message& message, By by) {
  const Form& form = message.form();
  Offer offer{reinterpret_cast<uint64_t>(message.buffer()), message.count(), 0, 0, 0, by == By::cma, by == By::both};
  if (!form.contiguous(message.count())) {
    if (!publish(form)) return std::nullopt;
    offer.form = form.number;
    offer.blob = form.published.address();
    offer.blob_bytes = form.published.bytes();
  } else {
    offer.buffer += static_cast<uint64_t>(form.true_lb);
  }
  auto parcel = prepare(message.bytes(), false);
  if (!parcel) return parcel;
  parcel->offered = true;
  parcel->slot->offer = offer;
  parcel->slot->stage.store(Stage::offered, std::memory_order_release);
  ++totals_.offered;
  return parcel;
}

bool Ship::is_done(const Parcel& parcel) {
  return parcel.slot->done.load(std::memory_order_acquire) >= parcel.serial;  // the slot may carry a later one
}

bool Ship::is_returned(const Parcel& parcel) {
  Stage stage = Stage::returned;
  return parcel.slot->stage.load(std::memory_order_relaxed) == stage &&
         parcel.slot->stage.compare_exchange_strong(stage, Stage::packed, std::memory_order_acq_rel);
}

bool Ship::withdraw(const Parcel& parcel) {
  Stage stage = Stage::offered;
  return parcel.slot->stage.compare_exchange_strong(stage, Stage::packed, std::memory_order_acq_rel);
}

void Ship::help(const Parcel& parcel, const Message& message) {
  if (parcel.slot->stage.load(std::memory_order_acquire) != Stage::joint) return;
  JointCopy& joint = parcel.slot->joint;
  if (!joint.has_more() || joint.has_refused()) return;
  std::optional<Range> part = joint.take();
  if (!part) return;
  const Offer& target = joint.target();
  const BlobPointer blob = target.form == 0 ? nullptr : layout_of(parcel.receiver, target);
  const End from = end_of(message, message.count());
  End to{blob.get(), target.count, nullptr};
  const auto* const there = reinterpret_cast<const std::byte*>(target.buffer);
  const std::byte* first = there;
  int64_t length = message.bytes();
  const bool fits = target.form == 0 || (blob && blob->size() * target.count == message.bytes() &&
                                         Message(Form(*blob), target.count, there).reach(first, length));
  uint8_t* const here =
      !fits ? nullptr
            : board_.writable_at(parcel.receiver, reinterpret_cast<uint64_t>(first), static_cast<uint64_t>(length));
  if (here == nullptr) {
    joint.refuse(*part);
    return;
  }
  to.base = reinterpret_cast<std::byte*>(here) - (first - there);
  for (; part; part = joint.take()) {
    if (!copy_part(from, to, *part).ok()) {
      joint.refuse(*part);
      return;
    }
    joint.finish();
    totals_.helped.fetch_add(1, std::memory_order_relaxed);
  }
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

void Ship::abandon(const Parcel& parcel) { parcel.slot->done.store(parcel.serial, std::memory_order_release); }

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

Status Ship::land(const Record& record, const Message& into, void (*idle)()) {
  Slot& slot = board_.slot(record.sender, record.slot);
  Stage stage = Stage::offered;
  bool pulls = slot.stage.compare_exchange_strong(stage, Stage::taken, std::memory_order_acq_rel);
  Status moved = pulls ? pull(record, slot.offer, into) : Status{};
  if (!moved.ok() && slot.offer.by_cma) {  // memory that the system does not read, such as a device's
    slot.stage.store(Stage::returned, std::memory_order_release);
    pulls = false;
  }
  if (!pulls) moved = unload(record, slot, into, idle);
  if (pulls || moved.ok()) slot.done.store(record.serial, std::memory_order_release);
  if (!moved.ok()) return moved;
  totals_.landed.fetch_add(1, std::memory_order_relaxed);
  totals_.landed_bytes.fetch_add(record.bytes, std::memory_order_relaxed);
  return {};
}

// Unpacks while the sender packs.
Status Ship::unload(const Record& record, const Slot& slot, const Message& into, void (*idle)()) const {
  const uint8_t* const packed = board_.at(record.sender, record.address, record.bytes);
  const auto bytes = static_cast<int64_t>(record.bytes);
  Patience patience;
  for (int64_t first = 0; first < bytes;) {
    const auto ready = static_cast<int64_t>(slot.ready.load(std::memory_order_acquire));
    const int64_t last = std::min(ready, bytes);
    if (last <= first) {
      if (!patience.pause()) continue;
      if (!board_.lives(record.sender)) return ended(record);
      if (idle != nullptr) idle();
      continue;
    }
    patience = {};
    into.unpack({first, last}, packed + first);
    first = last;
  }
  return {};
}

// Whether the sender can write to where the message goes.
bool Ship::can_join(const Record& record, const Message& into) const {
  const auto bytes = static_cast<int64_t>(record.bytes);
  const Form& form = into.form();
  if (form.size <= 0 || bytes % form.size != 0 || !can_reach(record.sender)) return false;
  const int64_t count = bytes / form.size;
  return is_mapped({form, count, into.buffer()}) && (form.contiguous(count) || publish(form));
}

// Copies together with the sender, which helps if it waits.
Status Ship::pull_jointly(const Record& record, const End& theirs, const Message& into) {
  const auto bytes = static_cast<int64_t>(record.bytes);
  const Form& form = into.form();
  const End ours = end_of(into, bytes / form.size);
  Offer target{reinterpret_cast<uint64_t>(ours.base), ours.count, 0, 0, 0};
  if (ours.blob != nullptr) {
    target.form = form.number;
    target.blob = form.published.address();
    target.blob_bytes = form.published.bytes();
  }
  Slot& slot = board_.slot(record.sender, record.slot);
  slot.joint.open(target, bytes);
  slot.stage.store(Stage::joint, std::memory_order_release);
  while (const auto part = slot.joint.take()) {
    SPL_TRY(copy_part(theirs, ours, *part));
    slot.joint.finish();
  }
  Patience patience;
  while (!slot.joint.is_over()) {
    if (const auto part = slot.joint.take_refused()) {
      SPL_TRY(copy_part(theirs, ours, *part));
      slot.joint.finish();
    } else if (patience.pause() && !board_.lives(record.sender)) {
      return ended(record);
    }
  }
  return {};
}

BlobPointer Ship::layout_of(uint32_t sender, const Offer& offer) {
  const std::lock_guard lock(layouts_mutex_);
  if (memoised_) {
    if (BlobPointer known = layouts_.find(sender, offer.form)) return known;
  }
  const uint8_t* const bytes = board_.at(sender, offer.blob, offer.blob_bytes);
  if (bytes == nullptr) return nullptr;
  return layouts_.learn(sender, offer.form, {reinterpret_cast<const std::byte*>(bytes), offer.blob_bytes});
}

// Copies from the sender's memory to its place.
Status Ship::pull(const Record& record, const Offer& offer, const Message& into) {
  const auto lost = [&] { return fail(Code::environment, "rank ", record.sender, " offers what cannot be read"); };
  const auto bytes = static_cast<int64_t>(record.bytes);
  if (offer.by_cma) {
    const BlobPointer blob = offer.form == 0 ? nullptr : layout_of(record.sender, offer);
    if (offer.form != 0 && (!blob || blob->size() * offer.count != bytes)) return lost();
    return read_by_cma(board_.process(record.sender), blob.get(), offer.count, offer.buffer, into, bytes);
  }
  if (offer.form == 0) {
    const uint8_t* const run = board_.at(record.sender, offer.buffer, record.bytes);
    if (run == nullptr) return lost();
    if (offer.joins && can_join(record, into)) {
      auto* const base = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(run));
      return pull_jointly(record, {nullptr, 0, base}, into);
    }
    into.unpack({0, bytes}, run);
    return {};
  }
  const BlobPointer blob = layout_of(record.sender, offer);
  if (!blob || blob->size() * offer.count != bytes) return lost();
  const Form shape(*blob);
  const std::byte* first = nullptr;
  int64_t length = 0;
  const auto* const theirs = reinterpret_cast<const std::byte*>(offer.buffer);
  if (!Message(shape, offer.count, theirs).reach(first, length)) return lost();
  const uint8_t* const here =
      board_.at(record.sender, reinterpret_cast<uint64_t>(first), static_cast<uint64_t>(length));
  if (here == nullptr) return lost();
  const std::byte* const base = reinterpret_cast<const std::byte*>(here) - (first - theirs);
  if (offer.joins && can_join(record, into)) {
    return pull_jointly(record, {blob.get(), offer.count, const_cast<std::byte*>(base)}, into);
  }
  return copy_between({*blob, offer.count, base}, into, bytes);
}

}  // namespace spinloom::mpi
