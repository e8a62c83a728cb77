// Pack - zstd, where the machine has it.
//
// Contract: libzstd.so.1 is loaded when it is first needed; its four functions here have kept their binary interface
//   since 1.0. pack() gives nothing where it is missing or does not make the bytes fewer.
// Threads: any. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "predict/trace/code.hpp"

namespace spinloom::trace {

[[nodiscard]] bool can_pack();
[[nodiscard]] Bytes pack(std::span<const uint8_t> raw);
// Needs can_pack(). Returns false if the bytes do not unpack to `raw_bytes` bytes.
[[nodiscard]] bool unpack(std::span<const uint8_t> packed, size_t raw_bytes, Bytes& raw);

}  // namespace spinloom::trace
