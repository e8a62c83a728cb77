// Naive - one asynchronous copy of the driver for each contiguous block, as MPI libraries do it: for comparison only.
//
// Contract: moves a message whose one side is a layout and whose other side is packed; returns how many copies were
//   issued. Stops after `blocks_max` blocks (0: no limit). The copies end in stream order.
// Threads: any. Time: host time.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/message.hpp"

namespace spinloom::gpu {

Result<int64_t> naive_move(const Device& device, const Message& message, const Ends& ends, Stream stream,
                           int64_t blocks_max = 0);

}  // namespace spinloom::gpu
