#include "memory/gpu/naive.hpp"

#include "memory/gpu/device_state.hpp"
#include "memory/layout/blocks.hpp"

namespace spinloom::gpu {

Result<int64_t> naive_move(const Device& device, const Message& message, const Ends& ends, Stream stream,
                           int64_t blocks_max) {
  if (message.from.blob.has_value() == message.to.blob.has_value()) {
    return fail(Code::invalid, "the way of one copy a block takes a layout on one side and packed bytes on the other");
  }
  const bool packs = message.from.blob.has_value();
  const Side& side = packs ? message.from : message.to;
  const Device::State& state = device.state();
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  const auto from = reinterpret_cast<DeviceAddress>(ends.from) + static_cast<DeviceAddress>(message.from.offset);
  const auto to = reinterpret_cast<DeviceAddress>(ends.to) + static_cast<DeviceAddress>(message.to.offset);
  int64_t blocks = 0;
  int64_t packed = 0;
  int result = 0;
  SPL_TRY(layout::for_each_block(*side.blob, side.count, [&](const layout::Piece& piece) {
    const auto offset = static_cast<DeviceAddress>(piece.offset);
    const auto position = static_cast<DeviceAddress>(packed);
    result = state.driver->copy_async(to + (packs ? position : offset), from + (packs ? offset : position),
                                      static_cast<size_t>(piece.bytes), stream);
    packed += piece.bytes;
    ++blocks;
    return result == 0 && blocks != blocks_max;
  }));
  SPL_CUDA(*state.driver, result, "to copy block ", blocks, " of a message");
  return blocks;
}

}  // namespace spinloom::gpu
