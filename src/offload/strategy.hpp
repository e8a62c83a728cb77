// Strategy - the ways to receive a non-contiguous message that can be compared.
//
// Threads: plain values. Time: none. Sources: SC'19 datatypes paper, section 3.2; `seek` is ours.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace spinloom::offload {

enum class Strategy : uint8_t {
  host_mpitypes,  // RDMA into a buffer, then the host unpacks with a segment (the paper's baseline)
  specialised,    // a handler for vectors or lists
  rw_cp,          // segments from progressing checkpoints, blocked round-robin
  seek,           // no checkpoints: each packet seeks in the blob
};

[[nodiscard]] const char* name_of(Strategy strategy);
// Names of strategies that are planned but not built answer Code::unsupported.
[[nodiscard]] Result<Strategy> strategy_named(std::string_view name);

}  // namespace spinloom::offload
