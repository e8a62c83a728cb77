// Scenarios of the sender's side - streaming puts and process-puts (scenarios.hpp: Scenario).
#pragma once

#include <cstdint>
#include <string>

#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

Result<std::string> streaming_puts(Testbed& bed, uint64_t seed);
Result<std::string> process_puts(Testbed& bed, uint64_t seed);
Result<std::string> failing_process_puts(Testbed& bed, uint64_t seed);

}  // namespace spinloom::testbed
