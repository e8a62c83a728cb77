// The parts that both directions of a pair share: letters, lanes, and how a move begins and ends.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/checked.hpp"
#include "memory/gpu/draft.hpp"
#include "memory/gpu/pair_state.hpp"

namespace spinloom::gpu {
namespace {

// wait_for() looks this often without a pause, before it lets others have the processor or waits for a letter.
constexpr unsigned looks_before_yield = 1000;
// pump() looks after so many empty looks if the peer's process still lives; a power of two.
constexpr unsigned looks_between_lives = 64;

Result<PairMove> begin_move(const std::shared_ptr<Pair::State>& pair, bool is_send, const Side& side, std::byte* base,
                            Stream stream) {
  if (pair->pair_error) return *pair->pair_error;
  PairLane& lane = is_send ? pair->out : pair->in;
  if (!lane.move.expired()) {
    return fail(Code::invalid, "the pair is still at its last ", is_send ? "send" : "receive",
                ": one move in each direction at a time, so wait for that first");
  }
  auto move = std::make_shared<PairMove::State>();
  move->pair = pair;
  move->is_send = is_send;
  move->side = side;
  move->base = base;
  move->stream = stream;
  lane.move = move;
  return PairMove(std::move(move));
}

}  // namespace

// ---- letters ----

void Pair::State::sort_letter(PairMessage message) {
  PairLetter letter;
  if (message.size() < sizeof letter.head) {
    pair_error =
        fail(Code::invalid, "the other process of the pair sent what is no letter: ", message.size(), " bytes");
    return;
  }
  std::memcpy(static_cast<void*>(&letter.head), message.data(), sizeof letter.head);
  letter.rest.assign(message.begin() + sizeof letter.head, message.end());
  switch (letter.head.kind) {
    case PairLetterKind::offer:
    case PairLetterKind::withdrawn:
    case PairLetterKind::piece: to_receiver.push_back(std::move(letter)); return;
    case PairLetterKind::go:
    case PairLetterKind::done:
    case PairLetterKind::refused: to_sender.push_back(std::move(letter)); return;
    case PairLetterKind::ended: pair_error = Error{Code::environment, letter.sentence()}; return;
  }
  pair_error = fail(Code::invalid, "the other process of the pair sent a letter of an unknown kind");
}

void Pair::State::pump() {
  bool has_looked_again = false;
  while (!pair_error) {
    auto received = channel->receive(0);
    if (!received) {
      pair_error = received.error();
    } else if (*received) {
      empty_polls = 0;
      sort_letter(std::move(**received));
      return;
    } else if (has_looked_again) {
      pair_error = fail(Code::environment, "the other process of the pair has ended");
    } else if (++empty_polls % looks_between_lives == 0 && watch.ended()) {
      has_looked_again = true;  // letters that it sent before it ended may have come since
    } else {
      return;
    }
  }
}

void Pair::State::wait_for_letter() {
  if (pair_error) return;
  auto received = channel->receive(1);
  if (!received) {
    pair_error = received.error();
  } else if (*received) {
    sort_letter(std::move(**received));
  } else {
    empty_polls |= looks_between_lives - 1;  // pump() looks next time if the peer's process lives
  }
}

Status Pair::State::post(PairLetter::Head head, std::span<const std::byte> rest) {
  head.number = is_for_receiver(head.kind) ? sent_number : received_number;
  PairMessage message(sizeof head + rest.size());
  std::memcpy(message.data(), &head, sizeof head);
  if (!rest.empty()) std::memcpy(message.data() + sizeof head, rest.data(), rest.size());
  const Status sent = channel->send(message);
  if (!sent && !pair_error) pair_error = sent.error();
  return sent;
}

Status Pair::State::post(PairLetterKind kind, std::string_view sentence) {
  PairLetter::Head head;
  head.kind = kind;
  return post(head, std::as_bytes(std::span(sentence)));
}

// ---- lanes ----

Status Pair::State::prepare(PairLane& lane, int64_t packed_bytes, bool with_pieces) const {
  const auto wanted = static_cast<size_t>(pieces());
  while (lane.events.size() < wanted) {
    SPL_ASSIGN(Event event, Event::make(device));
    lane.events.push_back(std::move(event));
  }
  while (with_pieces && lane.pieces.size() < wanted) {
    SPL_ASSIGN(Memory piece, Memory::pinned(device, options.piece_bytes));
    lane.pieces.push_back(std::move(piece));
  }
  const auto bytes = static_cast<size_t>(packed_bytes);
  if (lane.packed.bytes() < bytes) {
    lane.packed = Memory();
    SPL_ASSIGN(lane.packed, Memory::device(device, bytes));
  }
  return {};
}

Result<const Plan*> PairLane::plan_for(const Device& device, const Side& from, const Side& to) {
  const auto same = [](const Side& a, const Side& b) {
    return a.count == b.count && a.offset == b.offset && a.blob.has_value() == b.blob.has_value() &&
           (!a.blob || a.blob->data() == b.blob->data());
  };
  for (const CachedPlan& cached : plans) {
    if (same(cached.from, from) && same(cached.to, to)) return &cached.plan;
  }
  const Message message{from, to};
  SPL_ASSIGN(Plan plan, Plan::make(device, {&message, 1}));
  if (plans.size() == pair_plans_max) plans.pop_back();
  plans.push_front({from, to, std::move(plan)});
  return &plans.front().plan;
}

Result<PairSpan> span_of(const Device& device, const Side& side, const std::byte* base, const char* role) {
  if (!side.blob) return fail(Code::invalid, role, " has no layout: both ends of a pair need one");
  SPL_ASSIGN(const int64_t bytes, bytes_of({side, Side::packed()}));
  PairSpan span{bytes, const_cast<std::byte*>(base)};
  if (bytes == 0) return span;
  const layout::Blob& blob = *side.blob;
  SPL_ASSIGN(const int64_t steps, checked::mul(side.count - 1, blob.extent()));
  SPL_ASSIGN(const int64_t lowest, checked::add(blob.true_lb(), side.offset));
  SPL_ASSIGN(const int64_t first, checked::add(lowest, std::min<int64_t>(steps, 0)));
  SPL_ASSIGN(const int64_t reach_bytes, checked::add(blob.true_extent(), std::abs(steps)));
  span.first += first;
  SPL_ASSIGN(const Pointer found, inspect(span.first));
  if (found.kind == PointerKind::host) {
    return fail(Code::invalid, role, " lies at ", static_cast<const void*>(span.first),
                ", which is memory of the host, or memory of a GPU that was freed");
  }
  if (found.kind == PointerKind::device && found.ordinal != device.ordinal()) {
    return fail(Code::invalid, role, " lies in device ", found.ordinal, ", the pair uses device ", device.ordinal());
  }
  const auto* const start = static_cast<const std::byte*>(found.start);
  const int64_t left_bytes = start == nullptr ? reach_bytes : start + found.bytes - span.first;
  if (reach_bytes > left_bytes) {
    return fail(Code::invalid, role, " ends behind the memory that was allocated for it: ", reach_bytes,
                " bytes are needed, ", left_bytes, " are left");
  }
  return span;
}

// ---- a move ----

size_t PairMove::State::length_of(int64_t piece) const {
  return static_cast<size_t>(std::min(pair->piece_bytes(), bytes - offset_of(piece)));
}

std::byte* PairMove::State::piece_at(int64_t piece) const {
  const auto number = static_cast<uint64_t>(piece);
  if (way == PairWay::staged) return pair->ring.piece(is_send ? pair->lane_out : 1 - pair->lane_out, number);
  return lane().pieces[number % lane().pieces.size()].data();
}

std::byte* PairMove::State::piece_on_device(int64_t piece) const {
  return pair->ring.piece_on_device(is_send ? pair->lane_out : 1 - pair->lane_out, static_cast<uint64_t>(piece));
}

Event& PairMove::State::event_of(int64_t piece) const {
  return lane().events[static_cast<size_t>(piece) % lane().events.size()];
}

PairMove::State::~State() {
  if (phase == Phase::over) return;
  (void)pair->device.synchronise(stream);  // waits for copies from and to pieces
  if (pair->pair_error) return;
  (void)pair->post(PairLetterKind::ended, "the other process of the pair has dropped a move before it was over");
  pair->pair_error = fail(Code::invalid, "a move of the pair was dropped before it was over");
}

void PairMove::State::finish() {
  phase = Phase::over;
  memory.reset();
  lane().move.reset();
}

// Ends a move that has failed. Waits for copies that still use pieces.
Error PairMove::State::fail_move(Error error, bool tell_peer) {
  (void)pair->device.synchronise(stream);
  if (tell_peer && !pair->pair_error) {
    (void)pair->post(is_send ? PairLetterKind::withdrawn : PairLetterKind::refused, error.message);
  }
  move_error = error;
  finish();
  return error;
}

bool PairMove::State::waits_for_letter() const {
  switch (phase) {
    case Phase::offer:
    case Phase::answer:
    case Phase::over: return true;
    case Phase::pieces: return way == PairWay::packed && issued == freed;
    case Phase::finishing: return false;
  }
  return false;
}

Result<bool> PairMove::State::advance() {
  if (move_error) return *move_error;
  if (phase == Phase::over) return true;
  // A letter that is here may end the move. Bytes behind it in the channel may then be the caller's, so they are not
  // read.
  const auto step_once = [&] { return is_send ? step_send() : step_receive(); };
  auto has_ended = step_once();
  if (has_ended && !*has_ended) {
    pair->pump();
    has_ended = step_once();
  }
  if (move_error || !has_ended) return has_ended;
  if (!*has_ended && pair->pair_error) return fail_move(*pair->pair_error, false);
  return has_ended;
}

Result<bool> PairMove::State::step() {
  auto has_ended = advance();
  if (const auto opposite = opposite_move(); opposite != nullptr && has_ended && !*has_ended) {
    (void)opposite->advance();  // the other move reports its own failures
  }
  return has_ended;
}

Result<bool> PairMove::test() { return state_->step(); }
PairWay PairMove::way() const { return state_->way; }

Result<bool> PairMove::wait_for(int patience_ms) {
  State& move = *state_;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  for (unsigned looks = 1;; ++looks) {
    SPL_ASSIGN(const bool is_over, move.step());
    if (is_over) return true;
    if (looks < looks_before_yield) continue;
    if (looks % 16 == 0 && std::chrono::steady_clock::now() > end) return false;
    const auto opposite = move.opposite_move();
    if (move.waits_for_letter() && (opposite == nullptr || opposite->waits_for_letter())) {
      move.pair->wait_for_letter();
    } else {
      sched_yield();
    }
  }
}

Status PairMove::wait() {
  while (true) {
    SPL_ASSIGN(const bool is_over, wait_for(1000));
    if (is_over) return {};
  }
}

Result<PairMove> Pair::begin_send(const Side& from, const void* base, Stream stream) {
  SPL_ASSIGN(PairMove move, begin_move(state_, true, from, static_cast<std::byte*>(const_cast<void*>(base)), stream));
  SPL_TRY(move.state_->offer());
  return move;
}

Result<PairMove> Pair::begin_receive(const Side& to, void* base, Stream stream) {
  SPL_ASSIGN(PairMove move, begin_move(state_, false, to, static_cast<std::byte*>(base), stream));
  PairMove::State& state = *move.state_;
  const auto span = span_of(state_->device, to, state.base, "the destination");
  if (span) {
    state.bytes = span->bytes;
  } else {
    state.side_error = span.error();
  }
  return move;
}

Status Pair::send(const Side& from, const void* base, Stream stream) {
  SPL_ASSIGN(PairMove move, begin_send(from, base, stream));
  return move.wait();
}

Status Pair::receive(const Side& to, void* base, Stream stream) {
  SPL_ASSIGN(PairMove move, begin_receive(to, base, stream));
  return move.wait();
}

}  // namespace spinloom::gpu
