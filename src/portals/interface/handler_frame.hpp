// Handler frame - everything that a handler of a message of Portals may access.
//
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "nic/portals/nic.hpp"
#include "nic/spin/handler_runner.hpp"

namespace spinloom::portals {

// The frame for a handler that the engine wants to run.
[[nodiscard]] spin::HandlerFrame frame_of(const nic::Her& her, const nic::Nic& engine, std::span<uint8_t> nic_memory);

}  // namespace spinloom::portals
