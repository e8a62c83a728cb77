#include "mpi/moving/copy_pipeline.hpp"

#include <algorithm>
#include <cstring>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {

Status CopyPipeline::begin(const std::string& name, uint32_t rank, uint32_t size, uint32_t local_ranks,
                           const Settings& settings) {
  staging_.set_limit(settings.staging_bytes);
  chunk_bytes_ = settings.chunk_bytes;
  keeps_layouts_ = settings.memoised;
  for (uint32_t slot = Board::slots; slot > 0; --slot) idle_slots_.push_back(slot - 1);
  in_use_.reserve(Board::slots);
  return board_.join(name, rank, size, local_ranks, settings.min_bytes);
}

// Takes back the slots and buffers of messages that their receivers have taken, or that were abandoned.
void CopyPipeline::reclaim_slots() {
  const auto taken = [this](const SlotInUse& used) {
    const Slot& slot = board_.slot(board_.rank(), used.slot);
    if (slot.done.load(std::memory_order_acquire) != slot.serial.load(std::memory_order_relaxed)) return false;
    staging_.give_back(used.buffer);
    idle_slots_.push_back(used.slot);
    return true;
  };
  in_use_.erase(std::remove_if(in_use_.begin(), in_use_.end(), taken), in_use_.end());
}

std::optional<PendingSend> CopyPipeline::prepare(int64_t bytes, bool will_pack) {
  reclaim_slots();
  const auto wanted = static_cast<uint64_t>(bytes);
  Staging::Buffer buffer;
  if (!idle_slots_.empty()) buffer = will_pack ? staging_.take(wanted) : staging_.reserve(wanted);
  if (buffer.start == nullptr) {
    ++totals_.refused;
    return std::nullopt;
  }
  const uint32_t number = idle_slots_.back();
  idle_slots_.pop_back();
  in_use_.push_back({number, buffer});
  ++totals_.sent;
  totals_.sent_bytes += static_cast<uint64_t>(bytes);

  Slot& slot = board_.slot(board_.rank(), number);
  Record record;
  record.secret = board_.secret();
  record.sender = board_.rank();
  record.slot = number;
  record.serial = ++last_serial_;
  record.bytes = static_cast<uint64_t>(bytes);
  record.address = reinterpret_cast<uint64_t>(buffer.start);
  std::memcpy(slot.record, &record, sizeof record);
  slot.ready.store(0, std::memory_order_relaxed);
  slot.stage.store(Stage::packed, std::memory_order_relaxed);
  slot.serial.store(record.serial, std::memory_order_release);
  return PendingSend{&slot, number, record.serial, buffer.start};
}

bool CopyPipeline::is_mapped(const Message& message) {
  const std::byte* first = nullptr;
  int64_t bytes = 0;
  return message.reach(first, bytes) && process_heap().is_shared(first, static_cast<size_t>(bytes));
}

bool CopyPipeline::publish(const Form& form) {
  form.published.put(form.layout->blob().bytes());
  return form.published.address() != 0;
}

std::optional<Offer> CopyPipeline::offer_of(const Message& message, CopyMode mode) {
  const Form& form = message.form();
  Offer offer{reinterpret_cast<uint64_t>(message.buffer()),
              message.count(),
              0,
              0,
              0,
              mode == CopyMode::cma,
              mode == CopyMode::both};
  offer.is_within = mode == CopyMode::within;
  if (!form.is_contiguous(message.count())) {
    offer.layout_number = form.number;
    if (offer.is_within) {
      offer.blob = reinterpret_cast<uint64_t>(&form.layout->blob());
      return offer;
    }
    if (!publish(form)) return std::nullopt;
    offer.blob = form.published.address();
    offer.blob_bytes = form.published.bytes();
  } else {
    offer.buffer += static_cast<uint64_t>(form.true_lb);
  }
  return offer;
}

std::optional<PendingSend> CopyPipeline::offer(const Message& message, CopyMode mode) {
  const auto offer = offer_of(message, mode);
  if (!offer) return std::nullopt;
  auto pending = prepare(message.bytes(), false);
  if (!pending) return pending;
  pending->is_offered = true;
  pending->slot->offer = *offer;
  pending->slot->stage.store(Stage::offered, std::memory_order_release);
  ++totals_.offered;
  return pending;
}

std::optional<PendingSend> CopyPipeline::offer(const DeviceEnd& end, bool waits, const char*& why) {
  const DeviceBlock& block = end.block();
  const Form& form = *block.form;
  const std::byte* const first = static_cast<const std::byte*>(end.buffer()) + block.offset + form.true_lb;
  const auto memory = gpu::export_memory(first);
  if (!memory) {
    why = "the GPU's driver does not export the buffer's memory";
    return std::nullopt;
  }
  Offer offer{.buffer = 0, .count = block.count, .layout_number = 0, .blob = 0, .blob_bytes = 0, .is_on_device = true};
  DeviceOffer device_offer{.memory = *memory, .offset = 0, .sender_waits = waits};
  why = "there was no room in shared memory";
  if (!form.is_contiguous(block.count)) {
    if (!form.layout || !publish(form)) return std::nullopt;
    offer.layout_number = form.number;
    offer.blob = form.published.address();
    offer.blob_bytes = form.published.bytes();
    device_offer.offset = -form.true_lb;
  }
  auto pending = prepare(form.size * block.count, false);
  if (!pending) return pending;
  pending->is_offered = true;
  pending->slot->offer = offer;
  pending->slot->device = device_offer;
  pending->slot->stage.store(Stage::offered, std::memory_order_release);
  ++totals_.offered;
  return pending;
}

bool CopyPipeline::is_done(const PendingSend& pending) {
  return pending.slot->done.load(std::memory_order_acquire) >= pending.serial;  // the slot may carry a later message
}

bool CopyPipeline::is_returned(const PendingSend& pending) {
  Stage stage = Stage::returned;
  return pending.slot->stage.load(std::memory_order_relaxed) == stage &&
         pending.slot->stage.compare_exchange_strong(stage, Stage::packed, std::memory_order_acq_rel);
}

bool CopyPipeline::withdraw(const PendingSend& pending) {
  Stage stage = Stage::offered;
  return pending.slot->stage.compare_exchange_strong(stage, Stage::packed, std::memory_order_acq_rel);
}

void CopyPipeline::help(const PendingSend& pending, const Message& message) {
  if (pending.slot->stage.load(std::memory_order_acquire) != Stage::joint) return;
  JointCopy& joint = pending.slot->joint;
  if (!joint.has_more() || joint.has_refused()) return;
  std::optional<Range> part = joint.take(JointCopy::Side::sender);
  if (!part) return;
  const PeerEnd to = end_at(pending.receiver, joint.target(), message.bytes());
  const CopyEnd from = end_of(message, message.count());
  for (; part; part = joint.take(JointCopy::Side::sender)) {
    if (to.end.base == nullptr || !copy_part(from, to.end, *part).ok()) {
      joint.refuse(*part);
      return;
    }
    joint.finish();
    totals_.helped.fetch_add(1, std::memory_order_relaxed);
  }
}

void CopyPipeline::load(const PendingSend& pending, const Message& message) const {
  const int64_t bytes = message.bytes();
  const int64_t chunk_bytes = message.form().chunk_bytes(chunk_bytes_);
  for (int64_t first = 0; first < bytes;) {
    const int64_t last = first + std::min(bytes - first, chunk_bytes);
    message.pack({first, last}, pending.packed + first);
    pending.slot->ready.store(static_cast<uint64_t>(last), std::memory_order_release);
    first = last;
  }
}

void CopyPipeline::abandon(const PendingSend& pending) {
  pending.slot->done.store(pending.serial, std::memory_order_release);
}

}  // namespace spinloom::mpi
