// The receiver's side of a record: it unpacks, or copies from the sender's memory, alone or with the sender.
#include <algorithm>

#include "memory/layout/copy.hpp"
#include "memory/layout/transfer.hpp"
#include "mpi/entry/spin.hpp"
#include "mpi/messages/cma.hpp"
#include "mpi/moving/copy_pipeline.hpp"

namespace spinloom::mpi {
namespace {

Status unreadable_offer(uint32_t sender) {
  return fail(Code::environment, "rank ", sender, " offers what cannot be read");
}

Status sender_died(const Record& record) {
  return fail(Code::environment, "rank ", record.sender, " ended while it sent a message");
}

// Copies the `bytes` packed bytes of a layout to the first bytes of a message.
Status copy_between(const layout::Source& from, const Message& into, int64_t bytes) {
  const Form& form = into.form();
  if (form.is_contiguous(into.count())) {
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

// Copies a message from a place of a peer or of this rank itself.
Status copy_from(const CopyEnd& theirs, const Message& into, int64_t bytes) {
  if (theirs.blob != nullptr) return copy_between({*theirs.blob, theirs.count, theirs.base}, into, bytes);
  into.unpack({0, bytes}, reinterpret_cast<const uint8_t*>(theirs.base));
  return {};
}

}  // namespace

std::optional<Record> CopyPipeline::read(const void* bytes, int64_t length) const {
  if (!Record::may_be(length)) return std::nullopt;
  const Record record = Record::read(bytes);
  if (record.secret != board_.secret() || record.slot >= Board::slots) return std::nullopt;
  if (board_.at(record.sender, record.address, record.bytes) == nullptr) return std::nullopt;
  const Slot& slot = board_.slot(record.sender, record.slot);
  if (slot.serial.load(std::memory_order_acquire) != record.serial) return std::nullopt;
  return record;
}

// The sender's slot and buffer may serve another message once this one is done, so a sender that packs must have ended.
void CopyPipeline::drop(const Record& record, void (*idle)()) {
  Slot& slot = board_.slot(record.sender, record.slot);
  Stage stage = Stage::offered;
  if (!slot.stage.compare_exchange_strong(stage, Stage::taken, std::memory_order_acq_rel)) {
    for (int64_t ready = 0; ready < static_cast<int64_t>(record.bytes);) {
      const Result<int64_t> more = wait_until_packed(record, slot, ready, idle);
      if (!more.ok()) break;
      ready = *more;
    }
  }
  slot.done.store(record.serial, std::memory_order_release);
}

Status CopyPipeline::land(const Record& record, const Message& into, void (*idle)(), DeviceEnd* end) {
  Slot& slot = board_.slot(record.sender, record.slot);
  Stage stage = Stage::offered;
  bool pulls = slot.stage.compare_exchange_strong(stage, Stage::taken, std::memory_order_acq_rel);
  const bool on_device = pulls && slot.offer.is_on_device;
  bool is_mapped = true;
  Status moved = on_device ? pull_from_device(record, slot, into, end, is_mapped)
                 : pulls   ? pull(record, slot.offer, into)
                           : Status{};
  if (!is_mapped) devices_.give_up(record.sender, moved.error());
  // A message that cannot be read or mapped goes back to its sender, which packs it. A message on a device goes back
  // only to a sender that waits for that: another may be in a call that never looks.
  if (!moved.ok() && (on_device ? !is_mapped && slot.device.sender_waits : slot.offer.is_read_by_cma)) {
    slot.stage.store(Stage::returned, std::memory_order_release);
    pulls = false;
  }
  if (!pulls) moved = unload(record, slot, into, idle);
  const bool is_broken = slot.stage.load(std::memory_order_relaxed) == Stage::broken;
  if (pulls || moved.ok() || is_broken) slot.done.store(record.serial, std::memory_order_release);
  if (!moved.ok()) return moved;
  totals_.landed.fetch_add(1, std::memory_order_relaxed);
  totals_.landed_bytes.fetch_add(record.bytes, std::memory_order_relaxed);
  return {};
}

// Waits until the sender has packed more than the first `first` bytes, and returns how many it has.
Result<int64_t> CopyPipeline::wait_until_packed(const Record& record, const Slot& slot, int64_t first,
                                                void (*idle)()) const {
  Spin spin;
  for (;;) {
    const auto ready = static_cast<int64_t>(slot.ready.load(std::memory_order_acquire));
    if (ready > first) return std::min(ready, static_cast<int64_t>(record.bytes));
    if (!spin.pause()) continue;
    if (!board_.is_alive(record.sender)) return sender_died(record).error();
    if (slot.stage.load(std::memory_order_relaxed) == Stage::broken) {
      return fail(Code::environment, "rank ", record.sender, " cannot read its GPU's memory any more");
    }
    if (idle != nullptr) idle();
  }
}

// Unpacks while the sender packs.
Status CopyPipeline::unload(const Record& record, const Slot& slot, const Message& into, void (*idle)()) const {
  const uint8_t* const packed = board_.at(record.sender, record.address, record.bytes);
  const auto bytes = static_cast<int64_t>(record.bytes);
  for (int64_t first = 0; first < bytes;) {
    SPL_ASSIGN(const int64_t last, wait_until_packed(record, slot, first, idle));
    into.unpack({first, last}, packed + first);
    first = last;
  }
  return {};
}

// True if the sender can write to the place where the message goes.
bool CopyPipeline::can_join(const Record& record, const Message& into) const {
  const auto bytes = static_cast<int64_t>(record.bytes);
  const Form& form = into.form();
  if (form.size <= 0 || bytes % form.size != 0 || !can_reach(record.sender)) return false;
  const int64_t count = bytes / form.size;
  return is_mapped({form, count, into.buffer()}) && (form.is_contiguous(count) || publish(form));
}

// Copies together with the sender, which helps if it waits.
Status CopyPipeline::pull_jointly(const Record& record, const CopyEnd& theirs, const Message& into) {
  const auto bytes = static_cast<int64_t>(record.bytes);
  const Form& form = into.form();
  const CopyEnd ours = end_of(into, bytes / form.size);
  Offer target{reinterpret_cast<uint64_t>(ours.base), ours.count, 0, 0, 0};
  if (ours.blob != nullptr) {
    target.layout_number = form.number;
    target.blob = form.published.address();
    target.blob_bytes = form.published.bytes();
  }
  Slot& slot = board_.slot(record.sender, record.slot);
  slot.joint.open(target, bytes, std::max(bundle_bytes(ours), bundle_bytes(theirs)));
  slot.stage.store(Stage::joint, std::memory_order_release);
  Status copied;
  // Every part is finished, also after an Error: the sender's parts must end before this buffer is the caller's again.
  const auto copy = [&](Range part) {
    if (copied.ok()) copied = copy_part(theirs, ours, part);
    slot.joint.finish();
  };
  while (const auto part = slot.joint.take(JointCopy::Side::receiver)) copy(*part);
  Spin spin;
  while (!slot.joint.is_over()) {
    if (const auto part = slot.joint.take_refused()) {
      copy(*part);
    } else if (spin.pause() && !board_.is_alive(record.sender)) {
      return sender_died(record);
    }
  }
  return copied;
}

BlobPointer CopyPipeline::layout_of(uint32_t sender, const Offer& offer) {
  const std::lock_guard lock(layouts_mutex_);
  if (keeps_layouts_) {
    if (BlobPointer layout = layouts_.find(sender, offer.layout_number)) return layout;
  }
  const uint8_t* const bytes = board_.at(sender, offer.blob, offer.blob_bytes);
  if (bytes == nullptr) return nullptr;
  return layouts_.learn(sender, offer.layout_number, {reinterpret_cast<const std::byte*>(bytes), offer.blob_bytes});
}

// Returns a peer's place by addresses of this process. It has no base if it cannot be read or does not hold `bytes`
// bytes.
CopyPipeline::PeerEnd CopyPipeline::end_at(uint32_t peer, const Offer& offer, int64_t bytes) {
  PeerEnd peer_end;
  peer_end.end.count = offer.count;
  const auto* const their_base = reinterpret_cast<const std::byte*>(offer.buffer);
  const std::byte* first = their_base;
  int64_t length = bytes;
  if (offer.layout_number != 0) {
    peer_end.blob = layout_of(peer, offer);
    if (!peer_end.blob || peer_end.blob->size() * offer.count != bytes) return peer_end;
    if (!Message(Form(*peer_end.blob), offer.count, their_base).reach(first, length)) return peer_end;
    peer_end.end.blob = peer_end.blob.get();
  }
  uint8_t* const mapped = board_.writable_at(peer, reinterpret_cast<uint64_t>(first), static_cast<uint64_t>(length));
  if (mapped != nullptr) peer_end.end.base = reinterpret_cast<std::byte*>(mapped) - (first - their_base);
  return peer_end;
}

// Copies a message from the sender's memory to its destination.
Status CopyPipeline::pull(const Record& record, const Offer& offer, const Message& into) {
  const auto bytes = static_cast<int64_t>(record.bytes);
  if (offer.is_read_by_cma) {
    const BlobPointer blob = offer.layout_number == 0 ? nullptr : layout_of(record.sender, offer);
    if (offer.layout_number != 0 && (!blob || blob->size() * offer.count != bytes))
      return unreadable_offer(record.sender);
    return read_by_cma(board_.process(record.sender), {blob.get(), offer.count, offer.buffer}, into, bytes);
  }
  if (offer.is_within) {
    auto* const base = reinterpret_cast<std::byte*>(offer.buffer);
    return copy_from({reinterpret_cast<const layout::Blob*>(offer.blob), offer.count, base}, into, bytes);
  }
  const PeerEnd theirs = end_at(record.sender, offer, bytes);
  if (theirs.end.base == nullptr) return unreadable_offer(record.sender);
  if (offer.joins && can_join(record, into)) return pull_jointly(record, theirs.end, into);
  return copy_from(theirs.end, into, bytes);
}

namespace {

// Takes the message by a kernel or a copy of this rank's device.
Status take(int ordinal, const DeviceSource& from, const Message& into, DeviceEnd* end) {
  DeviceMoves& moves = DeviceMoves::of_process();
  if (end != nullptr && end->ordinal() == ordinal && from.bytes % end->block().form->size == 0) {
    DeviceBlock block = end->block();
    block.count = from.bytes / block.form->size;
    SPL_TRY(moves.take(ordinal, from, block, end->buffer()));
    end->set_in_place();
    return {};
  }
  if (end != nullptr && !end->is_on_device()) return moves.take_packed(ordinal, from, end->room());
  SPL_ASSIGN(const DeviceMoves::Room room, moves.room(ordinal, from.bytes));
  SPL_TRY(moves.take_packed(ordinal, from, room.data()));
  into.unpack({0, from.bytes}, reinterpret_cast<const uint8_t*>(room.data()));
  return {};
}

// Takes all bytes that the message spans by one copy. This needs no memory of the device, which may have none left.
Status take_span(int ordinal, const DeviceSource& from, const Message& into) {
  const std::byte* const buffer = from.data + from.offset;
  const std::byte* first = buffer;
  int64_t length = from.bytes;
  if (from.blob != nullptr && !Message(Form(*from.blob), from.count, buffer).reach(first, length)) {
    return fail(Code::fault, "a message spans more than an address can say");
  }
  std::vector<std::byte> span(static_cast<size_t>(length));
  SPL_TRY(DeviceMoves::of_process().read(ordinal, first, span.data(), length));
  CopyEnd span_end{.blob = from.blob.get(), .count = from.count};
  span_end.base = span.data() + (buffer - first);
  return copy_from(span_end, into, from.bytes);
}

}  // namespace

Status CopyPipeline::pull_from_device(const Record& record, const Slot& slot, const Message& into, DeviceEnd* end,
                                      bool& is_mapped) {
  const auto bytes = static_cast<int64_t>(record.bytes);
  const Offer& offer = slot.offer;
  DeviceSource from{.blob = nullptr, .count = offer.count, .bytes = bytes, .offset = slot.device.offset};
  if (offer.layout_number != 0) {
    from.blob = layout_of(record.sender, offer);
    if (!from.blob || from.blob->size() * offer.count != bytes) return unreadable_offer(record.sender);
  }
  if (end != nullptr) SPL_TRY(end->check());
  const int ordinal = devices_.ordinal();
  const auto map = [&]() -> Result<gpu::PeerMemory> {
    SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal));
    return gpu::PeerMemory::open(device, slot.device.memory);
  };
  const auto mapped = map();
  is_mapped = mapped.ok();
  if (!mapped) return mapped.error();
  from.data = mapped->data();
  if (take(ordinal, from, into, end).ok()) return {};
  return take_span(ordinal, from, into);
}

Status CopyPipeline::fetch(uint32_t sender, const Offer& offer, int64_t bytes, const Message& into, Source& source) {
  if (source.end.base == nullptr || !(source.offer == offer)) {
    PeerEnd peer_end = end_at(sender, offer, bytes);
    source = {offer, std::move(peer_end.blob), peer_end.end};
  }
  if (source.end.base == nullptr) return unreadable_offer(sender);
  SPL_TRY(copy_from(source.end, into, bytes));
  totals_.landed.fetch_add(1, std::memory_order_relaxed);
  totals_.landed_bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
  return {};
}

}  // namespace spinloom::mpi
