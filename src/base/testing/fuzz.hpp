// Fuzz - what a fuzz target gives to its driver (fuzz_main.cpp).
//
// Contract: LLVMFuzzerTestOneInput, the entry of libFuzzer, throws or dies where a property does not hold. seeds()
//   are good inputs to begin with; mutate() changes an input a little, in ways that the driver's changes of single
//   bytes hardly find.
// Threads: one. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace spinloom::fuzz {

using Input = std::vector<uint8_t>;

std::vector<Input> seeds(Random& random);
void mutate(Random& random, Input& input);

}  // namespace spinloom::fuzz
