// Finish checksum - checksums that a sender left to hardware, which a virtual link does not have.
//
// Contract: finish_checksum() adds up a frame from `start` to its end and puts the result at `start + offset`, where
//   the sum of the pseudo-header stands already; places outside of the frame change nothing. finish_if_offloaded() does
//   that for a UDP or TCP packet over IPv4 whose field holds just the sum of its pseudo-header, which is what Linux
//   leaves there. One in 65536 packets that are right already looks like that, too; it gets the checksum that it has.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spinloom::port {

void finish_checksum(std::span<uint8_t> frame, size_t start, size_t offset);
void finish_if_offloaded(std::span<uint8_t> frame);

}  // namespace spinloom::port
