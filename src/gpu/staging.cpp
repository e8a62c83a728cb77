#include "gpu/staging.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "gpu/device_state.hpp"
#include "gpu/draft.hpp"
#include "layout/copy.hpp"

namespace spinloom::gpu {

struct Staging::State {
  struct Piece {
    Memory pinned;
    void* done = nullptr;  // an event: the piece's copy has ended
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

  State(Device on, Side host_side, int64_t all, int64_t piece, Plan packs, Plan unpacks)
      : device(std::move(on)),
        host(std::move(host_side)),
        bytes(all),
        piece_bytes(piece),
        pack(std::move(packs)),
        unpack(std::move(unpacks)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const Driver& driver = *device.state().driver;
    const ContextGuard guard(driver, device.state().context);
    for (const Piece& piece : pieces) {
      if (piece.done != nullptr) (void)driver.event_destroy(piece.done);
    }
  }

  [[nodiscard]] int64_t last_of(int64_t first) const { return std::min(bytes, first + piece_bytes); }
  Piece& piece_at(int64_t first) { return pieces[static_cast<size_t>(first / piece_bytes) % pieces.size()]; }
  Status wait(const Piece& piece) const {
    const Driver& driver = *device.state().driver;
    SPL_CUDA(driver, driver.event_synchronize(piece.done), "to wait for a piece");
    return {};
  }
  // The packed bytes of the device's side, where pieces are copied from or to.
  [[nodiscard]] std::byte* packed_at(const void* on_device) const {
    if (packed.data() != nullptr) return packed.data();
    return static_cast<std::byte*>(const_cast<void*>(on_device)) + device_offset;
  }
  Status mark(const Piece& piece, Stream stream) const {
    const Driver& driver = *device.state().driver;
    SPL_CUDA(driver, driver.event_record(piece.done, stream), "to mark a piece");
    return {};
  }
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
  const Driver& driver = *device.state().driver;
  const ContextGuard guard(driver, device.state().context);
  SPL_CUDA(driver, guard.result(), "to use device ", device.ordinal());
  const int64_t wanted = std::min<int64_t>(options.pieces, (bytes + piece_bytes - 1) / piece_bytes);
  constexpr unsigned no_timing = 2;
  for (int64_t i = 0; i < wanted; ++i) {
    State::Piece& piece = state->pieces.emplace_back();
    SPL_ASSIGN(piece.pinned, Memory::pinned(device, static_cast<size_t>(std::min(piece_bytes, bytes))));
    SPL_CUDA(driver, driver.event_create(&piece.done, no_timing), "to make an event on device ", device.ordinal());
  }
  return Staging(std::move(state));
}

Status Staging::to_host(const void* on_device, void* on_host, Stream stream) {
  State& state = *state_;
  const Device::State& device = state.device.state();
  const ContextGuard guard(*device.driver, device.context);
  SPL_CUDA(*device.driver, guard.result(), "to use device ", device.ordinal);
  std::byte* const packed = state.packed_at(on_device);
  auto* const base = static_cast<std::byte*>(on_host) + state.host.offset;
  if (state.packed.data() != nullptr) SPL_TRY(state.pack.launch(on_device, packed, stream));
  int64_t issued = 0;
  for (int64_t first = 0; first < state.bytes; first += state.piece_bytes) {
    const auto ahead = static_cast<int64_t>(state.pieces.size()) * state.piece_bytes;
    for (; issued < std::min(state.bytes, first + ahead); issued += state.piece_bytes) {
      const State::Piece& piece = state.piece_at(issued);
      const auto length = static_cast<size_t>(state.last_of(issued) - issued);
      SPL_TRY(copy_bytes(state.device, piece.pinned.data(), packed + issued, length, stream));
      SPL_TRY(state.mark(piece, stream));
    }
    const State::Piece& piece = state.piece_at(first);
    SPL_TRY(state.wait(piece));
    const int64_t last = state.last_of(first);
    const std::span<const std::byte> bytes(piece.pinned.data(), static_cast<size_t>(last - first));
    if (state.host.blob) {
      SPL_TRY(layout::unpack(*state.host.blob, state.host.count, base, first, last, bytes));
    } else {
      std::memcpy(base + first, bytes.data(), bytes.size());
    }
  }
  return {};
}

Status Staging::to_device(const void* on_host, void* on_device, Stream stream) {
  State& state = *state_;
  const Device::State& device = state.device.state();
  const ContextGuard guard(*device.driver, device.context);
  SPL_CUDA(*device.driver, guard.result(), "to use device ", device.ordinal);
  std::byte* const packed = state.packed_at(on_device);
  const auto* const base = static_cast<const std::byte*>(on_host) + state.host.offset;
  const auto ahead = static_cast<int64_t>(state.pieces.size()) * state.piece_bytes;
  for (int64_t first = 0; first < state.bytes; first += state.piece_bytes) {
    const State::Piece& piece = state.piece_at(first);
    if (first >= ahead) SPL_TRY(state.wait(piece));
    const int64_t last = state.last_of(first);
    const std::span<std::byte> bytes(piece.pinned.data(), static_cast<size_t>(last - first));
    if (state.host.blob) {
      SPL_TRY(layout::pack(*state.host.blob, state.host.count, base, first, last, bytes));
    } else {
      std::memcpy(bytes.data(), base + first, bytes.size());
    }
    SPL_TRY(copy_bytes(state.device, packed + first, bytes.data(), bytes.size(), stream));
    SPL_TRY(state.mark(piece, stream));
  }
  if (state.packed.data() != nullptr) SPL_TRY(state.unpack.launch(packed, on_device, stream));
  return state.device.synchronise(stream);
}

}  // namespace spinloom::gpu
