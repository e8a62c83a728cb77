// Scenarios of memory - memory that is not all there, and requests of a rank to itself (scenarios.hpp: Scenario).
#pragma once

#include <cstdint>
#include <string>

#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

Result<std::string> missing_memory(Testbed& bed, uint64_t seed);
Result<std::string> own_requests(Testbed& bed, uint64_t seed);

}  // namespace spinloom::testbed
