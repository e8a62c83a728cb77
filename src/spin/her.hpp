// Her - handler execution request (HER): what a driver needs to run one handler.
//
// Contract: an engine that knows more of its messages derives its own from it.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "spin/context.hpp"
#include "spin/ids.hpp"
#include "spin/payload.hpp"

namespace spinloom::spin {

struct Her {
  HerId id;
  HandlerKind kind = HandlerKind::payload;
  ContextId context;
  HpuId hpu;    // assigned when the handler starts
  VhpuId vhpu;  // virtual HPU of the context; the HPU itself under the default policy
  uint64_t offset = 0;          // the payload's offset in the message, without the user header
  PayloadRef payload;  // without the user header; header handlers get the user header, completion handlers nothing
  uint64_t message_length = 0;  // with the user header
};

}  // namespace spinloom::spin
