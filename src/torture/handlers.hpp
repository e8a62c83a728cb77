// Handlers - the handlers of a run: C++ functions whose constants choose what they do, good or bad.
//
// Contract: the constants of a context hold a Plan. The payload handler writes each `block` bytes to places that are
//   `stride` apart in the entry, one DMA for each piece. For packets from offset `bad_from_offset` on, it ends with
//   payload_end and payload_code, before it has written anything in the entry. The header and completion handlers end
//   with their fields; the completion handler issues an empty DMA with event first if `completion_event` is set. gather
//   is the reverse of the payload handler: it fills the packets of a process-put. forward puts its packet to rank
//   `third_rank`, gets bytes from there and writes them, and adds one to a word there.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>

#include "nic/spin/handler_runner.hpp"
#include "torture/faults.hpp"

namespace spinloom::torture {

struct Plan {
  uint32_t block = 16;
  uint32_t stride = 16;
  uint64_t bad_from_offset = UINT64_MAX;
  uint32_t header_code = 0;
  uint32_t payload_code = 0;
  uint32_t completion_code = 0;
  uint8_t header_end = 0;  // nic::HandlerEnd
  uint8_t payload_end = 0;
  uint8_t completion_end = 0;
  uint8_t outside = 0;  // handlers of bad packets write outside the entry, and return payload_code
  uint8_t blocking = 0;  // DMAs are blocking calls from the handler's stack
  uint8_t completion_event = 0;  // the completion handler issues its DMA with event
  uint8_t unused[2] = {};
  uint64_t third_rank = 0;  // forward: the third rank
  uint64_t third_bits = 0;  // forward: its entries have these match bits plus 1, 2 and 3
};
static_assert(sizeof(Plan) == 56);

class Handlers {
 public:
  explicit Handlers(FaultCounts& faults);
  [[nodiscard]] spin::HandlerRunner& runner() { return native_; }

  uint32_t header = 0;
  uint32_t payload = 0;
  uint32_t completion = 0;
  uint32_t gather = 0;
  uint32_t forward = 0;

 private:
  spin::NativeHandlers native_;
};

}  // namespace spinloom::torture
