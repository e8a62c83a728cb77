// Movement - checks an operation on a memory descriptor as a program describes it, and translates it for the NIC.
//
// Contract: check_send() checks the arguments of puts, atomics, streaming puts and process-puts. quick_of() says
//   whether a put is quick; it and put_of() fill in what the NIC takes. reply_of() checks the place of a reply and
//   fills it in. trigger_of() finds the counter that a triggered operation waits for. The others return PTL_OK or the
//   error code for the program.
// Threads: the rank's. Time: none.
#pragma once

#include "portals/calls/convert.hpp"

namespace spinloom::calls {

// The common arguments of all operations that send.
struct SendArguments {
  ptl_handle_md_t md;
  ptl_size_t local_offset;
  ptl_size_t length;
  ptl_ack_req_t ack_req;
  ptl_process_t target;
  ptl_pt_index_t portal;
  ptl_match_bits_t match_bits;
  ptl_size_t remote_offset;
  void* user_ptr;
  ptl_hdr_data_t hdr_data;
};

// The counter and threshold that start a triggered operation.
struct TriggerArguments {
  ptl_handle_ct_t counter;
  ptl_size_t threshold;
};

// The objects that the arguments of an operation name, once they are checked.
struct CheckedSend {
  const NetworkInterface* interface = nullptr;
  const Descriptor* md = nullptr;
  nic::Rank target;
};

[[nodiscard]] int check_send(Process& process, const SendArguments& arguments, CheckedSend& send);
// Fills in `put` and returns true if this is a put without acknowledgement and send event from one range of memory
// (nic/portals/quick.hpp).
[[nodiscard]] bool quick_of(const CheckedSend& send, const SendArguments& arguments, nic::QuickPut& put);
// Fails for lack of memory only. `sends_later`: the NIC reads the buffer when it sends (triggered operations, streaming
// puts, process-puts), so that the bytes are not copied now even if the buffer is volatile.
[[nodiscard]] int put_of(Process& process, const CheckedSend& send, const SendArguments& arguments, nic::Put& put,
                         bool sends_later);
[[nodiscard]] int reply_of(Process& process, ptl_handle_md_t handle, ptl_size_t offset, ptl_size_t length,
                           void* user_ptr, nic::ReplyTo& reply);
[[nodiscard]] int trigger_of(Process& process, ptl_handle_md_t md,
                             const std::optional<TriggerArguments>& trigger_arguments,
                             std::optional<nic::Trigger>& trigger);

}  // namespace spinloom::calls
