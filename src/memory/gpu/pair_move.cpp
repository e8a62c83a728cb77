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

Result<PairMove> begin(const std::shared_ptr<Pair::State>& pair, bool sends, const Side& side, std::byte* base,
                       Stream stream) {
  if (pair->broken) return *pair->broken;
  PairLane& lane = sends ? pair->out : pair->in;
  if (!lane.move.expired()) {
    return fail(Code::invalid, "the pair is still at its last ", sends ? "send" : "receive",
                ": one move in each direction at a time, so wait for that first");
  }
  auto move = std::make_shared<PairMove::State>();
  move->pair = pair;
  move->sends = sends;
  move->side = side;
  move->base = base;
  move->stream = stream;
  lane.move = move;
  return PairMove(std::move(move));
}

}  // namespace

// ---- letters ----

void Pair::State::take(PairMessage message) {
  PairLetter letter;
  if (message.size() < sizeof letter.head) {
    broken = fail(Code::invalid, "the other process of the pair sent what is no letter: ", message.size(), " bytes");
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
    case PairLetterKind::ended: broken = Error{Code::environment, letter.sentence()}; return;
  }
  broken = fail(Code::invalid, "the other process of the pair sent a letter of an unknown kind");
}

void Pair::State::pump() {
  bool looked_again = false;
  while (!broken) {
    auto came = channel->receive(0);
    if (!came) {
      broken = came.error();
    } else if (*came) {
      quiet = 0;
      take(std::move(**came));
      return;
    } else if (looked_again) {
      broken = fail(Code::environment, "the other process of the pair has ended");
    } else if (++quiet % looks_between_lives == 0 && watch.ended()) {
      looked_again = true;  // letters that it sent before it ended may have come since
    } else {
      return;
    }
  }
}

void Pair::State::listen() {
  if (broken) return;
  auto came = channel->receive(1);
  if (!came) {
    broken = came.error();
  } else if (*came) {
    take(std::move(**came));
  } else {
    quiet |= looks_between_lives - 1;  // so that pump() looks next time if the peer's process lives
  }
}

Status Pair::State::post(PairLetter::Head head, std::span<const std::byte> rest) {
  head.number = for_receiver(head.kind) ? sent_number : received_number;
  PairMessage message(sizeof head + rest.size());
  std::memcpy(message.data(), &head, sizeof head);
  if (!rest.empty()) std::memcpy(message.data() + sizeof head, rest.data(), rest.size());
  const Status sent = channel->send(message);
  if (!sent && !broken) broken = sent.error();
  return sent;
}

Status Pair::State::post(PairLetterKind kind, std::string_view sentence) {
  PairLetter::Head head;
  head.kind = kind;
  return post(head, std::as_bytes(std::span(sentence)));
}

// ---- lanes ----

Status Pair::State::furnish(PairLane& lane, int64_t packed_bytes, bool with_pieces) const {
  const auto wanted = static_cast<size_t>(pieces());
  while (lane.events.size() < wanted) {
    SPL_ASSIGN(Event made, Event::make(device));
    lane.events.push_back(std::move(made));
  }
  while (with_pieces && lane.pieces.size() < wanted) {
    SPL_ASSIGN(Memory made, Memory::pinned(device, options.piece_bytes));
    lane.pieces.push_back(std::move(made));
  }
  const auto bytes = static_cast<size_t>(packed_bytes);
  if (lane.packed.bytes() < bytes) {
    lane.packed = Memory();
    SPL_ASSIGN(lane.packed, Memory::device(device, bytes));
  }
  return {};
}

Result<const Plan*> PairLane::plan(const Device& device, const Side& from, const Side& to) {
  const auto same = [](const Side& one, const Side& other) {
    return one.count == other.count && one.offset == other.offset && one.blob.has_value() == other.blob.has_value() &&
           (!one.blob || one.blob->data() == other.blob->data());
  };
  for (const Kept& kept : plans) {
    if (same(kept.from, from) && same(kept.to, to)) return &kept.plan;
  }
  const Message message{from, to};
  SPL_ASSIGN(Plan made, Plan::make(device, {&message, 1}));
  if (plans.size() == pair_plans_max) plans.pop_back();
  plans.push_front({from, to, std::move(made)});
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
  SPL_ASSIGN(const int64_t reach, checked::add(blob.true_extent(), std::abs(steps)));
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
  const int64_t left = start == nullptr ? reach : start + found.bytes - span.first;
  if (reach > left) {
    return fail(Code::invalid, role, " ends behind the memory that was allocated for it: ", reach,
                " bytes are needed, ", left, " are left");
  }
  return span;
}

// ---- a move ----

size_t PairMove::State::length_of(int64_t piece) const {
  return static_cast<size_t>(std::min(pair->piece_bytes(), bytes - first_of(piece)));
}

std::byte* PairMove::State::piece_at(int64_t piece) const {
  const auto number = static_cast<uint64_t>(piece);
  if (way == PairWay::staged) return pair->ring.piece(sends ? pair->lane_out : 1 - pair->lane_out, number);
  return lane().pieces[number % lane().pieces.size()].data();
}

std::byte* PairMove::State::piece_on_device(int64_t piece) const {
  return pair->ring.piece_on_device(sends ? pair->lane_out : 1 - pair->lane_out, static_cast<uint64_t>(piece));
}

Event& PairMove::State::event_of(int64_t piece) const {
  return lane().events[static_cast<size_t>(piece) % lane().events.size()];
}

PairMove::State::~State() {
  if (phase == Phase::over) return;
  (void)pair->device.synchronise(stream);  // waits for copies from and to pieces
  if (pair->broken) return;
  (void)pair->post(PairLetterKind::ended, "the other process of the pair has dropped a move before it was over");
  pair->broken = fail(Code::invalid, "a move of the pair was dropped before it was over");
}

void PairMove::State::end() {
  phase = Phase::over;
  memory.reset();
  lane().move.reset();
}

// Ends a move that has failed. Waits for copies that still use pieces.
Error PairMove::State::end(Error error, bool tell_peer) {
  (void)pair->device.synchronise(stream);
  if (tell_peer && !pair->broken) {
    (void)pair->post(sends ? PairLetterKind::withdrawn : PairLetterKind::refused, error.message);
  }
  failed = error;
  end();
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
  if (failed) return *failed;
  if (phase == Phase::over) return true;
  // A letter that is here may end the move. Bytes behind it in the channel may then be the caller's, so they are not
  // read.
  const auto go_on = [&] { return sends ? step_send() : step_receive(); };
  auto stepped = go_on();
  if (stepped && !*stepped) {
    pair->pump();
    stepped = go_on();
  }
  if (failed || !stepped) return stepped;
  if (!*stepped && pair->broken) return end(*pair->broken, false);
  return stepped;
}

Result<bool> PairMove::State::step() {
  auto stepped = advance();
  if (const auto beside = other(); beside != nullptr && stepped && !*stepped) {
    (void)beside->advance();  // the other move reports its own failures
  }
  return stepped;
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
    const auto beside = move.other();
    if (move.waits_for_letter() && (beside == nullptr || beside->waits_for_letter())) {
      move.pair->listen();
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
  SPL_ASSIGN(PairMove move, begin(state_, true, from, static_cast<std::byte*>(const_cast<void*>(base)), stream));
  SPL_TRY(move.state_->offer());
  return move;
}

Result<PairMove> Pair::begin_receive(const Side& to, void* base, Stream stream) {
  SPL_ASSIGN(PairMove move, begin(state_, false, to, static_cast<std::byte*>(base), stream));
  PairMove::State& state = *move.state_;
  const auto span = span_of(state_->device, to, state.base, "the destination");
  if (span) {
    state.bytes = span->bytes;
  } else {
    state.wrong = span.error();
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
