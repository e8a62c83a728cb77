#include "memory/gpu/staging.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "memory/gpu/draft.hpp"
#include "memory/gpu/event.hpp"
#include "memory/layout/copy.hpp"

namespace spinloom::gpu {

struct Staging::State {
  struct Piece {
    Memory pinned;
    Event copy_done;  // the piece's copy has ended
  };

  Device device;
  Side host;
  int64_t device_offset = 0;
  int64_t bytes;
  int64_t piece_bytes;
  Plan pack;
  Plan unpack;
  Memory packed;
  std::vector<Piece> pieces;
  Event end_event;  // marks the end of a move to the device
  bool is_busy = false;

  State(Device on, Side host_side, int64_t packed_bytes, int64_t piece, Plan packs, Plan unpacks)
      : device(std::move(on)),
        host(std::move(host_side)),
        bytes(packed_bytes),
        piece_bytes(piece),
        pack(std::move(packs)),
        unpack(std::move(unpacks)) {}

  [[nodiscard]] int64_t last_of(int64_t first) const { return std::min(bytes, first + piece_bytes); }
  [[nodiscard]] int64_t window_bytes() const { return static_cast<int64_t>(pieces.size()) * piece_bytes; }
  Piece& piece_at(int64_t first) { return pieces[static_cast<size_t>(first / piece_bytes) % pieces.size()]; }
  // The packed bytes of the device's side, where pieces are copied from or to.
  [[nodiscard]] std::byte* packed_at(const void* on_device) const {
    if (packed.data() != nullptr) return packed.data();
    return static_cast<std::byte*>(const_cast<void*>(on_device)) + device_offset;
  }
};

// The host's part of a move: `issued` bytes have been put on the stream, `done` bytes are out of their pieces.
struct StagingMove::State {
  std::shared_ptr<Staging::State> staging;
  bool to_host = false;
  void* on_device = nullptr;
  std::byte* on_host = nullptr;
  Stream stream = nullptr;
  int64_t issued_bytes = 0;
  int64_t done_bytes = 0;
  bool is_marked = false;  // the last kernel of a move to the device and the mark are on the stream
  bool is_over = false;
  std::optional<Error> failed;

  ~State() {
    if (!is_over) release_staging();
  }
  void release_staging() {
    if (!is_over) (void)staging->device.synchronise(stream);  // pieces that copies still use
    is_over = true;
    staging->is_busy = false;
  }

  Status start();
  // Moves one piece if its turn has come; if `waits`, waits for the turn. True: the move is over.
  Result<bool> step(bool waits);

 private:
  Result<bool> step_to_host(bool waits);
  Result<bool> step_to_device(bool waits);
  Status issue();
};

Result<Staging> Staging::make(const Device& device, const Side& on_device, const Side& on_host,
                              const StagingOptions& options) {
  if (options.pieces < 2 || options.piece_bytes == 0) {
    return fail(Code::invalid, options.pieces, " pieces of ", options.piece_bytes,
                " bytes: staging takes two or more that are not empty");
  }
  SPL_ASSIGN(const int64_t bytes, bytes_of({on_device, on_host}));
  const auto make_plan = [&](const Message& message) -> Result<Plan> {
    if (on_device.blob) return Plan::make(device, {&message, 1});
    return Plan::make(device, std::span<const Message>());
  };
  SPL_ASSIGN(Plan pack, make_plan({on_device, Side::packed()}));
  SPL_ASSIGN(Plan unpack, make_plan({Side::packed(), on_device}));
  const auto piece_bytes = static_cast<int64_t>(options.piece_bytes);
  auto state = std::make_shared<State>(device, on_host, bytes, piece_bytes, std::move(pack), std::move(unpack));
  state->device_offset = on_device.offset;
  if (on_device.blob) {
    SPL_ASSIGN(state->packed, Memory::device(device, static_cast<size_t>(bytes)));
  }
  const int64_t wanted = std::min<int64_t>(options.pieces, (bytes + piece_bytes - 1) / piece_bytes);
  for (int64_t i = 0; i < wanted; ++i) {
    State::Piece& piece = state->pieces.emplace_back();
    SPL_ASSIGN(piece.pinned, Memory::pinned(device, static_cast<size_t>(std::min(piece_bytes, bytes))));
    SPL_ASSIGN(piece.copy_done, Event::make(device));
  }
  SPL_ASSIGN(state->end_event, Event::make(device));
  return Staging(std::move(state));
}

// ---- a move ----

namespace {

Result<bool> poll_or_wait(const Event& event, bool waits) {
  if (!waits) return event.is_reached();
  SPL_TRY(event.synchronise());
  return true;
}

}  // namespace

// Puts the copy of the next piece to the host on the stream.
Status StagingMove::State::issue() {
  Staging::State& shared = *staging;
  const Staging::State::Piece& piece = shared.piece_at(issued_bytes);
  const auto length = static_cast<size_t>(shared.last_of(issued_bytes) - issued_bytes);
  SPL_TRY(copy_bytes(shared.device, piece.pinned.data(), shared.packed_at(on_device) + issued_bytes, length, stream));
  SPL_TRY(piece.copy_done.record(stream));
  issued_bytes += shared.piece_bytes;
  return {};
}

Status StagingMove::State::start() {
  if (!to_host) return {};
  Staging::State& shared = *staging;
  if (shared.packed.data() != nullptr) SPL_TRY(shared.pack.launch(on_device, shared.packed.data(), stream));
  while (issued_bytes < std::min(shared.bytes, shared.window_bytes())) SPL_TRY(issue());
  return {};
}

Result<bool> StagingMove::State::step_to_host(bool waits) {
  Staging::State& shared = *staging;
  if (done_bytes >= shared.bytes) return true;
  const Staging::State::Piece& piece = shared.piece_at(done_bytes);
  SPL_ASSIGN(const bool is_there, poll_or_wait(piece.copy_done, waits));
  if (!is_there) return false;
  const int64_t last = shared.last_of(done_bytes);
  const std::span<const std::byte> bytes(piece.pinned.data(), static_cast<size_t>(last - done_bytes));
  if (shared.host.blob) {
    SPL_TRY(layout::unpack(*shared.host.blob, shared.host.count, on_host, done_bytes, last, bytes));
  } else {
    std::memcpy(on_host + done_bytes, bytes.data(), bytes.size());
  }
  done_bytes = last;
  if (issued_bytes < shared.bytes) SPL_TRY(issue());
  return done_bytes >= shared.bytes;
}

Result<bool> StagingMove::State::step_to_device(bool waits) {
  Staging::State& shared = *staging;
  if (issued_bytes < shared.bytes) {
    const Staging::State::Piece& piece = shared.piece_at(issued_bytes);
    if (issued_bytes >= shared.window_bytes()) {
      SPL_ASSIGN(const bool is_free, poll_or_wait(piece.copy_done, waits));
      if (!is_free) return false;
    }
    const int64_t last = shared.last_of(issued_bytes);
    const std::span<std::byte> bytes(piece.pinned.data(), static_cast<size_t>(last - issued_bytes));
    if (shared.host.blob) {
      SPL_TRY(layout::pack(*shared.host.blob, shared.host.count, on_host, issued_bytes, last, bytes));
    } else {
      std::memcpy(bytes.data(), on_host + issued_bytes, bytes.size());
    }
    SPL_TRY(copy_bytes(shared.device, shared.packed_at(on_device) + issued_bytes, bytes.data(), bytes.size(), stream));
    SPL_TRY(piece.copy_done.record(stream));
    issued_bytes = last;
    return false;
  }
  if (!is_marked) {
    if (shared.packed.data() != nullptr) SPL_TRY(shared.unpack.launch(shared.packed.data(), on_device, stream));
    SPL_TRY(shared.end_event.record(stream));
    is_marked = true;
  }
  return poll_or_wait(shared.end_event, waits);
}

Result<bool> StagingMove::State::step(bool waits) {
  if (failed) return *failed;
  if (is_over) return true;
  const auto ended = to_host ? step_to_host(waits) : step_to_device(waits);
  if (!ended) {
    failed = ended.error();
    release_staging();
  } else if (*ended) {
    is_over = true;
    staging->is_busy = false;
  }
  return ended;
}

Result<bool> StagingMove::test() { return state_->step(false); }

Status StagingMove::wait() {
  while (true) {
    SPL_ASSIGN(const bool is_over, state_->step(true));
    if (is_over) return {};
  }
}

namespace {

Result<StagingMove> begin_staging(const std::shared_ptr<Staging::State>& staging, bool to_host, void* on_device,
                                  std::byte* on_host, Stream stream) {
  if (staging->is_busy) {
    return fail(Code::invalid, "the staging area is still at its last move: wait for that, or make another area");
  }
  auto move = std::make_shared<StagingMove::State>();
  move->staging = staging;
  move->to_host = to_host;
  move->on_device = on_device;
  move->on_host = on_host + staging->host.offset;
  move->stream = stream;
  staging->is_busy = true;
  SPL_TRY(move->start());
  return StagingMove(std::move(move));
}

}  // namespace

Result<StagingMove> Staging::begin_to_host(const void* on_device, void* on_host, Stream stream) {
  return begin_staging(state_, true, const_cast<void*>(on_device), static_cast<std::byte*>(on_host), stream);
}

Result<StagingMove> Staging::begin_to_device(const void* on_host, void* on_device, Stream stream) {
  return begin_staging(state_, false, on_device, static_cast<std::byte*>(const_cast<void*>(on_host)), stream);
}

Status Staging::to_host(const void* on_device, void* on_host, Stream stream) {
  SPL_ASSIGN(StagingMove move, begin_to_host(on_device, on_host, stream));
  return move.wait();
}

Status Staging::to_device(const void* on_host, void* on_device, Stream stream) {
  SPL_ASSIGN(StagingMove move, begin_to_device(on_host, on_device, stream));
  return move.wait();
}

}  // namespace spinloom::gpu
