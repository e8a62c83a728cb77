// Shim - runs a program on the host: the kernels' own source, with threads as turns of a loop.
//
// Contract: run_on_host() does what a launch would, over memory of the host. For tests and for machines without a GPU:
//   it is slow. Another kind of device would bring its own way to run blocks and threads here.
// Threads: pure over disjoint memory. Time: none.
#pragma once

#include <span>

#include "base/result.hpp"
#include "memory/gpu/program.hpp"

namespace spinloom::gpu {

Status run_on_host(const Program& program, std::span<const Ends> ends);

}  // namespace spinloom::gpu
