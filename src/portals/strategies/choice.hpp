// Choice - the strategy of a type that its user left open.
//
// Contract: choose() is what a commit does (SC'19 datatypes paper, section 3.2.6, step 1). One block: RDMA into its
//   place. A type that normalises to one vector: specialised handlers. Others: specialised handlers with a list of
//   blocks, the faster way; if the list takes more than 1 / list_share of the NIC's memory, which types share,
//   `general` where that takes less. A type for which there are no specialised handlers: `general`. Zero bytes: the
//   host.
// Threads: pure. Time: none.
#pragma once

#include "portals/strategies/plan.hpp"

namespace spinloom::strategies {

inline constexpr uint64_t list_share = 16;  // a list may take this part of the NIC's memory

[[nodiscard]] Strategy choose(const Message& message, const NicFacts& facts, const HandlerCost& cost, Strategy general);

}  // namespace spinloom::strategies
