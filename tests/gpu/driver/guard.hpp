// Guard - lets everybody touch device memory but one library, instruction by instruction.
//
// Contract: guard_begin(), once, where FAKE_GPU_OPEN names a library: each instruction that touches closed device
//   memory is let through by itself, and memory is closed again behind it, unless that library has asked for it, itself
//   or by a function of the C library. Then the process says so and ends. System calls are not let through. Only on
//   x86-64; elsewhere false.
// Threads: for programs of which one thread at a time touches device memory. Time: none.
#pragma once

namespace fake {

bool guard_begin(const char* library);

}  // namespace fake
