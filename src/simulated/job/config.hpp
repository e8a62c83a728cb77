// Config - reads a job's settings as the launcher gets them: one line each, "key value".
//
// Contract: read_config() takes the whole text; an unknown key, a wrong value or a missing setting is an Error that
//   names it. Lines:
//     profile NAME INTEGER | profile NAME NUMERATOR/DENOMINATOR | profile NAME "text"
//     rail NUMBER NAME VALUE (as profile; of further NICs of each rank, from 1 on)
//     image NAME PATH | ranks N | hpus N | mtu N | stack N | seed N | prefix 0|1
//     compute SECONDS: a rank's processor time without a call; 0: no limit
//     bridge RANKS 0|1 PICOSECONDS: so many ranks are in one fabric, the others in another one; whether the gateway
//       stores messages; its time for a packet
// Threads: any. Time: none.
#pragma once

#include <string_view>

#include "simulated/job/job.hpp"

namespace spinloom::job {

[[nodiscard]] Result<JobConfig> read_config(std::string_view text);

}  // namespace spinloom::job
