// Reach - whose shared memory this process can use, and whether the ranks of a job have to tell each other so.
//
// Contract: traits_of_self() is a number that two processes of a machine share when nothing keeps them from each other
//   that one of them can know: the same user and group, user namespace and capabilities, both can be traced, both have
//   the calls of the kernel that it takes; 0 where something is known to be in the way. must_agree() says whether all
//   ranks have to try: it answers the same for the same cards. unreachable_from() tries, and Unreached is what they
//   tell each other.
// Invariants: (1) two ranks use shared memory only if both can reach the other's: one way alone is not enough.
// Threads: plain values. Time: unreachable_from() takes a few calls of the kernel for each peer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "live/card.hpp"

namespace spinloom::live {

[[nodiscard]] uint64_t traits_of_self();

[[nodiscard]] bool must_agree(const std::vector<Card>& cards);

// Why a rank cannot use a peer's memory, by rank; empty where it can, or has no need to: on another machine.
using Unreached = std::vector<std::string>;

[[nodiscard]] Unreached unreachable_from(uint32_t rank, const std::vector<Card>& cards);

// For the launcher's exchange: a digit for each four ranks of the job. read_reach() takes what a peer has written into
// `out`, a mark for each rank; an Error where it is something else.
[[nodiscard]] std::string write(const Unreached& unreached);
[[nodiscard]] Result<std::vector<bool>> read_reach(const std::string& text, uint32_t ranks);

}  // namespace spinloom::live
