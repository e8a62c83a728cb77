// FrameCode - the events of a FrameNode. The argument is a slot.
#pragma once

#include <cstdint>

namespace spinloom::simulated {

enum FrameCode : uint32_t {
  at_the_nic,       // a frame's last byte is here
  match_ends,
  frame_stored,
  frame_left,
  at_far_end,
  at_the_stack,
  handler_is_done,
  write_read,       // a write to the host has been read from NIC memory
  write_landed,
  write_known,
  host_fetched,
  nic_written,
};

}  // namespace spinloom::simulated
