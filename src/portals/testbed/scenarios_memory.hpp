// Scenarios of memory that is not all there, and of requests to oneself; scenarios.hpp says what a scenario is.
#pragma once

#include <cstdint>
#include <string>

#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

Result<std::string> missing_memory(Testbed& bed, uint64_t seed);
Result<std::string> own_requests(Testbed& bed, uint64_t seed);

}  // namespace spinloom::testbed
