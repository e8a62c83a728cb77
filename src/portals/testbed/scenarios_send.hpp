// Scenarios of the sender's side; scenarios.hpp says what a scenario is.
#pragma once

#include <cstdint>
#include <string>

#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

Result<std::string> streaming_puts(Testbed& bed, uint64_t seed);
Result<std::string> process_puts(Testbed& bed, uint64_t seed);
Result<std::string> failing_process_puts(Testbed& bed, uint64_t seed);

}  // namespace spinloom::testbed
