// The sender's side of a pair's move.
#include <algorithm>

#include "memory/gpu/pair_state.hpp"

namespace spinloom::gpu {

// Writes to `head` what the receiver needs to read the memory in place. Memory that cannot be mapped is packed instead,
// unless ipc is forced.
Status PairMove::State::offer_memory(PairLetter::Head& head, std::byte* first) {
  const auto exported = export_memory(first);
  if (!exported) {
    if (pair->is_forced) return exported.error();
    way = PairWay::packed;
    return {};
  }
  head.memory = *exported;
  head.offset = side.offset + (base - first);
  if (!pair->stream_event) {
    auto made = Event::make(pair->device, true);
    if (made) {
      const auto handle = made->handle();
      if (handle) pair->stream_event_handle = *handle;
      pair->stream_event = std::move(*made);
    }
  }
  if (!pair->stream_event_handle)
    return pair->device.synchronise(stream);  // the event cannot be shared, so the host waits
  head.has_event = 1;
  head.event = *pair->stream_event_handle;
  return pair->stream_event.record(stream);
}

Status PairMove::State::offer() {
  ++pair->sent_number;
  PairLetter::Head head;
  const auto prepare = [&]() -> Status {
    SPL_ASSIGN(const PairSpan span, span_of(pair->device, side, base, "the source"));
    bytes = span.bytes;
    way = pair->way;
    head.count = side.count;
    if (way == PairWay::ipc && bytes > 0) SPL_TRY(offer_memory(head, span.first));
    if (way != PairWay::ipc) {
      piece_count = (bytes + pair->piece_bytes() - 1) / pair->piece_bytes();
      is_in_place = way == PairWay::staged && piece_count == 1 && piece_on_device(0) != nullptr;
      SPL_TRY(pair->prepare(lane(), is_in_place ? 0 : bytes, way == PairWay::packed));
      SPL_ASSIGN(const Plan* const plan, lane().plan_for(pair->device, side, Side::packed()));
      SPL_TRY(plan->launch(base, is_in_place ? piece_on_device(0) : lane().packed.data(), stream));
    }
    return {};
  };
  if (const Status ready = prepare(); !ready) return fail_move(ready.error(), true);
  head.way = way;
  head.bytes = bytes;
  std::span<const std::byte> blob;
  if (way == PairWay::ipc) {
    const auto& known = pair->blobs_sent;
    const auto found =
        std::ranges::find_if(known, [&](const auto& sent) { return sent && sent->data() == side.blob->data(); });
    head.slot = static_cast<uint32_t>(found - known.begin());
    if (found == known.end()) {
      head.slot = pair->next_slot++ % pair_blobs_max;
      head.has_layout = 1;
      blob = side.blob->bytes();
      pair->blobs_sent[head.slot] = side.blob;
    }
  }
  if (way == PairWay::staged) {
    PairRing::Lane& counters = pair->ring.lane(pair->lane_out);
    counters.filled.store(0, std::memory_order_relaxed);
    counters.freed.store(0, std::memory_order_release);
  }
  if (const Status sent = pair->post(head, blob); !sent) return fail_move(sent.error(), false);
  may_send_pieces = way == PairWay::staged;
  phase = way == PairWay::ipc ? Phase::answer : Phase::pieces;
  return {};
}

// Copies packed bytes into the pieces that are free, and hands a piece over when its copy has ended. The only piece of
// a short message was packed in place, where kernels reach it.
Status PairMove::State::fill_pieces() {
  PairRing::Lane* const counters = way == PairWay::staged ? &pair->ring.lane(pair->lane_out) : nullptr;
  freed = counters != nullptr ? static_cast<int64_t>(counters->freed.load(std::memory_order_acquire)) : filled;
  if (freed < 0 || freed > filled) return fail(Code::fault, "the other process gave back pieces that it never had");
  while (issued < std::min<int64_t>(piece_count, freed + pair->pieces())) {
    if (!is_in_place) {
      SPL_TRY(copy_bytes(pair->device, piece_at(issued), lane().packed.data() + offset_of(issued), length_of(issued),
                         stream));
    }
    SPL_TRY(event_of(issued).record(stream));
    ++issued;
  }
  while (filled < issued) {
    SPL_ASSIGN(const bool is_there, event_of(filled).is_reached());
    if (!is_there) break;
    if (counters != nullptr) {
      counters->filled.store(static_cast<uint64_t>(filled) + 1, std::memory_order_release);
    } else {
      PairLetter::Head head;
      head.kind = PairLetterKind::piece;
      head.bytes = static_cast<int64_t>(length_of(filled));
      SPL_TRY(pair->post(head, {piece_at(filled), length_of(filled)}));
    }
    ++filled;
  }
  return {};
}

Result<bool> PairMove::State::step_send() {
  while (!pair->to_sender.empty()) {
    const PairLetter letter = std::move(pair->to_sender.front());
    pair->to_sender.pop_front();
    if (letter.head.number != pair->sent_number) continue;
    switch (letter.head.kind) {
      case PairLetterKind::go: may_send_pieces = true; break;
      case PairLetterKind::done: finish(); return true;
      default:
        pair->blobs_sent = {};
        return fail_move(fail(Code::invalid, "the receiver refused the message: ", letter.sentence()), false);
    }
  }
  if (phase == Phase::pieces && may_send_pieces) {
    if (const Status filling = fill_pieces(); !filling) return fail_move(filling.error(), true);
    if (filled == piece_count) phase = Phase::answer;
  }
  return false;
}

}  // namespace spinloom::gpu
