// EntryMemory - where the bytes of an entry's memory lie: in one range, or in the elements of a scatter list.
//
// Contract: an offset counts from the start of the entry's memory, through the elements of its list.
// Threads: one owner (ends of a list are computed when they are first needed). Time: none.
#pragma once

#include "nic/portals/match_list.hpp"
#include "nic/spin/iovec.hpp"

namespace spinloom::nic {

// The scatter list of an entry; empty if it has none.
[[nodiscard]] IovecView list_of(const ListedEntry& listed);
// The address of a place in an entry's memory. The place behind a list's end is the end of its last element.
[[nodiscard]] uint64_t address_at(const ListedEntry& listed, uint64_t offset);

}  // namespace spinloom::nic
