// Her - handler execution request (HER): the data that a driver needs to run one handler.
//
// Contract: the engine fills in what the handler's kind and its network have; the driver passes it on as the arguments
//   and the command window of spinloom/handler.h say. Source: SC'17 sPIN paper, appendix B; PsPIN's task descriptor.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "nic/spin/context.hpp"
#include "nic/spin/ids.hpp"
#include "nic/spin/payload.hpp"

namespace spinloom::spin {

// The request of a message, with the values of ptl_request_type_t.
enum class RequestType : uint8_t { put, get, atomic };

struct Her {
  HerId id;
  HandlerKind kind = HandlerKind::payload;
  ContextId context;
  HpuId hpu;    // assigned when the handler starts
  VhpuId vhpu;  // virtual HPU of the context; the HPU itself under the default policy
  uint64_t offset = 0;          // the payload's offset in the message, without the user header
  PayloadRef payload;  // no user header but for header handlers, which get that alone; completion handlers get nothing
  // The length with the user header; for the header handler of a get, the bytes that it asks for.
  uint64_t message_length = 0;
  uint64_t entry_offset = 0;  // offset of the message in its entry; for header and payload handlers
  RequestType request = RequestType::put;  // this field to hdr_data: for header handlers
  Rank target;
  Rank source;
  uint64_t match_bits = 0;
  uint64_t hdr_data = 0;  // the header data, or the argument of mail
  uint64_t dropped_bytes = 0;  // completion handlers get this
  bool flow_control = false;  // completion handlers get this
  bool writes_packet = false;  // the handler may write to its packet: it fills it, or it is a frame
  // Frames have the next members in registers of the command window.
  uint32_t message = 0;  // the message's identifier; of mail, its value
  uint32_t rule_set = 0;  // the rule set that matched; of mail, its sender's context
  uint32_t flags = 0;  // SPL_FRAME_FIRST, SPL_FRAME_LAST, SPL_FRAME_BY_HOST
};

}  // namespace spinloom::spin
