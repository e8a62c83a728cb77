// The receiver's side of a pair's move.
#include <algorithm>
#include <cstring>

#include "memory/gpu/pair_state.hpp"

namespace spinloom::gpu {

// Starts the kernel that moves the message from the sender's memory to ours.
Status PairMove::State::launch_from_peer(const PairLetter::Head& head, const layout::Blob& blob) {
  SPL_ASSIGN(memory, PeerMemory::open(pair->device, head.memory));
  pair->peer_process = head.memory.process;
  if (head.has_event != 0) {
    if (!pair->peer_event_handle || *pair->peer_event_handle != head.event) {
      SPL_ASSIGN(pair->peer_event, Event::open(pair->device, head.event));
      pair->peer_event_handle = head.event;
    }
    SPL_TRY(pair->peer_event.make_wait(stream));
  }
  SPL_ASSIGN(const Plan* const plan, lane().plan_for(pair->device, Side::of(blob, head.count, head.offset), side));
  return plan->launch(memory->data(), base, stream);
}

Result<bool> PairMove::State::accept(const PairLetter& letter) {
  const PairLetter::Head& head = letter.head;
  if (letter.head.kind != PairLetterKind::offer) {
    return fail_move(fail(Code::invalid, "the sender has withdrawn the message: ", letter.sentence()), false);
  }
  const auto begin = [&]() -> Status {
    if (head.way != PairWay::ipc && head.way != PairWay::packed && (head.way != PairWay::staged || !pair->ring)) {
      return fail(Code::fault, "the sender chose a way that there is not");
    }
    way = head.way;
    if (head.has_layout != 0 && head.slot < pair_blobs_max) {
      SPL_ASSIGN(pair->blobs_known[head.slot], layout::Blob::validate(letter.rest));
    }
    if (side_error) return *side_error;
    if (head.bytes != bytes) {
      return fail(Code::invalid, "the sender's message has ", head.bytes, " packed bytes, the receiver's layout holds ",
                  bytes);
    }
    if (bytes == 0) return {};
    if (way == PairWay::ipc) {
      if (head.slot >= pair_blobs_max || !pair->blobs_known[head.slot]) {
        return fail(Code::fault, "the sender names a layout that it never sent");
      }
      return launch_from_peer(head, *pair->blobs_known[head.slot]);
    }
    piece_count = (bytes + pair->piece_bytes() - 1) / pair->piece_bytes();
    is_in_place = way == PairWay::staged && piece_count == 1 && piece_on_device(0) != nullptr;
    return pair->prepare(lane(), is_in_place ? 0 : bytes, way == PairWay::packed);
  };
  if (const Status begun = begin(); !begun) return fail_move(begun.error(), true);
  phase = way == PairWay::ipc ? Phase::finishing : Phase::pieces;
  if (way == PairWay::packed) {
    if (const Status status = pair->post(PairLetterKind::go); !status) return fail_move(status.error(), false);
  }
  return false;
}

// Copies pieces that came to the device, and gives them back when the copies have ended. The only piece of a short
// message is unpacked in place instead, where kernels reach it.
Status PairMove::State::drain_pieces() {
  PairRing::Lane* const counters = way == PairWay::staged ? &pair->ring.lane(1 - pair->lane_out) : nullptr;
  if (counters != nullptr) {
    const auto sender_filled = static_cast<int64_t>(counters->filled.load(std::memory_order_acquire));
    if (sender_filled < filled || sender_filled > freed + pair->pieces())
      return fail(Code::fault, "the sender counts pieces wrongly");
    filled = sender_filled;
  }
  while (way == PairWay::packed && filled < std::min<int64_t>(piece_count, freed + pair->pieces()) &&
         !pair->to_receiver.empty() && pair->to_receiver.front().head.kind == PairLetterKind::piece) {
    const PairMessage& packed = pair->to_receiver.front().rest;
    if (packed.size() != length_of(filled))
      return fail(Code::fault, "the sender sent a piece of ", packed.size(), " bytes");
    std::memcpy(piece_at(filled), packed.data(), packed.size());
    pair->to_receiver.pop_front();
    ++filled;
  }
  for (; issued < filled; ++issued) {
    if (is_in_place) {
      SPL_ASSIGN(const Plan* const plan, lane().plan_for(pair->device, Side::packed(), side));
      SPL_TRY(plan->launch(piece_on_device(issued), base, stream));
    } else {
      SPL_TRY(copy_bytes(pair->device, lane().packed.data() + offset_of(issued), piece_at(issued), length_of(issued),
                         stream));
    }
    SPL_TRY(event_of(issued).record(stream));
  }
  while (freed < issued) {
    SPL_ASSIGN(const bool is_there, event_of(freed).is_reached());
    if (!is_there) break;
    ++freed;
    if (counters != nullptr) counters->freed.store(static_cast<uint64_t>(freed), std::memory_order_release);
  }
  return {};
}

Result<bool> PairMove::State::step_receive() {
  if (phase == Phase::offer) {
    // Letters with the number of the last message are late: that message is over.
    while (!pair->to_receiver.empty() && pair->to_receiver.front().head.number == pair->received_number) {
      pair->to_receiver.pop_front();
    }
    if (pair->to_receiver.empty()) return false;
    const PairLetter letter = std::move(pair->to_receiver.front());
    pair->to_receiver.pop_front();
    pair->received_number = letter.head.number;
    SPL_ASSIGN(const bool is_over, accept(letter));
    if (is_over) return true;
    if (phase == Phase::finishing) {
      const auto mark = [&]() -> Status {
        if (!done) {
          SPL_ASSIGN(done, Event::make(pair->device));
        }
        return done.record(stream);
      };
      if (const Status marked = mark(); !marked) return fail_move(marked.error(), true);
    }
  }
  if (phase == Phase::pieces) {
    if (!pair->to_receiver.empty() && pair->to_receiver.front().head.kind == PairLetterKind::withdrawn) {
      const std::string sentence = pair->to_receiver.front().sentence();
      pair->to_receiver.pop_front();
      return fail_move(fail(Code::invalid, "the sender has withdrawn the message: ", sentence), false);
    }
    const auto advance = [&]() -> Status {
      SPL_TRY(drain_pieces());
      if (freed < piece_count) return {};
      if (!is_in_place && bytes > 0) {
        SPL_ASSIGN(const Plan* const plan, lane().plan_for(pair->device, Side::packed(), side));
        SPL_TRY(plan->launch(lane().packed.data(), base, stream));
      }
      SPL_ASSIGN(done, Event::make(pair->device));
      SPL_TRY(done.record(stream));
      phase = Phase::finishing;
      return {};
    };
    if (const Status advanced = advance(); !advanced) return fail_move(advanced.error(), true);
  }
  if (phase == Phase::finishing) {
    const auto is_there = done.is_reached();
    if (!is_there) return fail_move(is_there.error(), true);
    if (!*is_there) return false;
    if (const Status status = pair->post(PairLetterKind::done); !status) return fail_move(status.error(), false);
    finish();
    return true;
  }
  return false;
}

}  // namespace spinloom::gpu
