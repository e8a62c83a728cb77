// Config - reads a job's settings as the launcher gets them: one line each, "key value".
//
// Contract: read_config() takes the whole text. An unknown key, a value that is no number where one is needed, or a
//   missing field of a profile is an Error that names it. Lines:
//     profile NAME INTEGER | profile NAME NUMERATOR/DENOMINATOR | profile NAME "text"
//     rail NUMBER NAME VALUE: a line as for profile, for a further NIC of each rank; NUMBER is 1, 2, ...
//     image NAME PATH | ranks N | hpus N | mtu N | stack N | seed N | prefix 0|1
//     compute SECONDS: the most processor time of a rank without a call; 0: no limit
//     bridge RANKS 0|1 PICOSECONDS: the first RANKS ranks are in one fabric, the others in another one; 1: the gateway
//       stores messages; its time for a packet
// Threads: any. Time: none.
#pragma once

#include <string_view>

#include "simulated/job/job.hpp"

namespace spinloom::job {

[[nodiscard]] Result<JobConfig> read_config(std::string_view text);

}  // namespace spinloom::job
