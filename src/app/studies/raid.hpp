// Raid - one request to a RAID-5 array of four data nodes and their parity node, by the ways of a study.
//
// Contract: run_raid() is run_study() for Experiment::raid, an update, and Experiment::raid_read. Rank 0, the client,
//   writes or reads `pieces`, one for each of the ranks 2 to 5; a rank with an empty piece gets no message. Without
//   `pieces` it is `bytes` in four pieces of equal length, `offset` bytes into their blocks; the last ones may be
//   shorter or empty, and every rank gets a message. Rank 1 holds the parity.
//   An update: time_ps is from the first put until the client knows that all pieces are stored and the parity contains
//   them.
//   rdma: the pieces land beside the blocks; each node's processor exchanges old and new bytes and puts their
//     exclusive or, the delta, to rank 1, whose processor applies one delta after the other and answers; the data
//     node's processor answers the client. One processor a node.
//   portals4: as rdma, but a triggered put answers the client.
//   stream: handlers of raid_data.c and raid_parity.c; no processor. Afterwards the client reads every piece back
//     through the data nodes' handlers.
//   A read: time_ps is from the first call until the client knows that all bytes are in its memory.
//   rdma: a request of 16 B lands; the data node's processor sees it, reads it, and puts the bytes to the client.
//   portals4: a get, which the data node's NIC answers.
//   stream: a request of 8 B; a header handler of raid_data.c puts the bytes to the client.
//   Before a time is given, all blocks are compared (data, parity, their surroundings), and the bytes that a read
//   returned.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include "app/studies/study.hpp"

namespace spinloom::app {

inline constexpr uint32_t raid_data_nodes = 4;
inline constexpr uint64_t raid_block_bytes_max = 1ULL << 30;  // raid_data.c counts them in 32 bits

[[nodiscard]] Result<StudyResult> run_raid(const StudyConfig& config, const LoadedImages& loaded);

}  // namespace spinloom::app
