// Raid - updates blocks that lie across four data nodes of a RAID-5 array, and their parity, by the ways of a study.
//
// Contract: run_raid() is run_study() for Experiment::raid: rank 0, the client, writes `bytes` in four pieces of equal
//   length (the last may be shorter), one to each of the ranks 2 to 5, `offset` bytes into their blocks; rank 1 holds
//   the parity. time_ps is from the first put until the client knows that all four pieces are stored and the parity
//   contains them.
//   rdma: the pieces land beside the blocks; each node's processor exchanges old and new bytes and puts their
//     exclusive or, the delta, to rank 1, whose processor applies one delta after the other and answers; the data
//     node's processor answers the client. One processor a node.
//   portals4: as rdma, but a triggered put answers the client.
//   stream: handlers of raid_data.c and raid_parity.c; no processor. Afterwards the client reads every piece back
//     through the data nodes' handlers.
//   Before a time is given, all blocks are compared: data, parity, and what surrounds them.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include "app/study.hpp"

namespace spinloom::app {

[[nodiscard]] Result<StudyResult> run_raid(const StudyConfig& config, const LoadedImages& loaded);

}  // namespace spinloom::app
