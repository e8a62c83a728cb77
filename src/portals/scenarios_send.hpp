// The scenarios of the sender's side; scenarios.hpp has the contract.
#pragma once

#include <cstdint>
#include <string>

#include "portals/testbed.hpp"

namespace spinloom::portals {

Result<std::string> streaming_puts(Testbed& bed, uint64_t seed);
Result<std::string> process_puts(Testbed& bed, uint64_t seed);
Result<std::string> failing_process_puts(Testbed& bed, uint64_t seed);

}  // namespace spinloom::portals
