// Reach - finds out which ranks' shared memory this process can use, and whether ranks must tell each other so.
//
// Contract: traits_of_self() is a number that is equal for two processes of a machine if, as far as one process can
//   know, nothing keeps them from each other: they have the same user and group, user namespace and capabilities, both
//   can be traced, and both may use the system calls that are needed. It is 0 where something is known to be in the
//   way. must_agree() says whether all ranks have to try; it returns the same for the same cards. unreachable_from()
//   tries, and the ranks tell each other the resulting UnreachedReasons. shares_namespaces() compares this process with
//   another one, which need not be a rank.
// Invariants: (1) two ranks use shared memory only if each can reach the other's; one direction alone is not enough.
// Threads: plain values. Time: unreachable_from() makes a few system calls for each peer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "live/launch/business_card.hpp"

namespace spinloom::live {

[[nodiscard]] uint64_t traits_of_self();

// True if another process has the namespaces of process ids, of networks and of users that this one has, as far as this
// one may look. False for 0, which stands for a process that is not seen here.
[[nodiscard]] bool shares_namespaces(pid_t other);

[[nodiscard]] bool must_agree(const std::vector<BusinessCard>& cards);

// The reasons why a rank cannot use a peer's memory, indexed by peer. The text is empty where it can, for peers that
// have ended, for ranks of its own process, and for peers on other machines.
using UnreachedReasons = std::vector<std::string>;

[[nodiscard]] UnreachedReasons unreachable_from(uint32_t rank, const std::vector<BusinessCard>& cards);

// Writes the text for the launcher's exchange: a hexadecimal digit for each four ranks of the job. read_unreached()
// reads such a text of a peer and returns a mark for each rank; a text of another form is an Error.
[[nodiscard]] std::string write(const UnreachedReasons& unreached);
[[nodiscard]] Result<std::vector<bool>> read_unreached(const std::string& text, uint32_t ranks);

}  // namespace spinloom::live
