// Scenarios of gets and atomics - and of handlers that use them or that hosts start (scenarios.hpp: Scenario).
#pragma once

#include <cstdint>
#include <string>

#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

// Two ranks get pieces of each other's entries at once.
[[nodiscard]] Result<std::string> crossing_gets(Testbed& bed, uint64_t seed);
// Several ranks change the same elements of one rank by operations whose order does not matter.
[[nodiscard]] Result<std::string> commuting_atomics(Testbed& bed, uint64_t seed);
// Several ranks draw numbers from one counter by fetch-and-add, and compete for one word.
[[nodiscard]] Result<std::string> drawing_numbers(Testbed& bed, uint64_t seed);
// Gets that wait for a counter, and gets that are refused.
[[nodiscard]] Result<std::string> refused_gets(Testbed& bed, uint64_t seed);
// Puts, gets and atomics to entries of both lists; the initiator hears which list took each of them.
[[nodiscard]] Result<std::string> lists_told(Testbed& bed, uint64_t seed);

// Handlers of one rank get bytes from the two ranks that put to it, and count there.
[[nodiscard]] Result<std::string> exchanging_handlers(Testbed& bed, uint64_t seed);
// A context that is installed first and activated later, and one that only the host starts; their counts are checked.
[[nodiscard]] Result<std::string> started_by_hosts(Testbed& bed, uint64_t seed);

}  // namespace spinloom::testbed
