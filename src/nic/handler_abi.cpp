#include "nic/handler_abi.hpp"

#include <cstring>

namespace spinloom::nic {
namespace {

// ptl_payload_t of spinloom/handler.h as RV32 lays it out.
struct PayloadStruct {
  uint64_t length;
  uint64_t offset;
  uint32_t base;
  uint32_t padding;
};
static_assert(sizeof(PayloadStruct) == 24, "two 64-bit sizes, a 32-bit pointer, padded to 8 bytes");

LocalMemory kind_of(uint32_t address) {
  switch (address >> 28) {
    case SPL_HPU_PACKET_BASE >> 28: return LocalMemory::packet;
    case SPL_HPU_CONST_BASE >> 28: return LocalMemory::constants;
    case SPL_HPU_STATE_BASE >> 28: return LocalMemory::state;
    case SPL_HPU_STACK_BASE >> 28: return LocalMemory::stack;
    default: return LocalMemory::outside;
  }
}

}  // namespace

HandlerArguments arguments_of(const Her& her, std::span<uint8_t> stack) {
  const uint32_t top = SPL_HPU_STACK_BASE + static_cast<uint32_t>(stack.size());
  HandlerArguments arguments;
  if (her.kind == HandlerKind::completion) {
    arguments.registers = {static_cast<uint32_t>(her.dropped_bytes), her.flow_control ? 1u : 0u, SPL_HPU_STATE_BASE, 0};
    arguments.stack_pointer = top;
    return arguments;
  }
  constexpr uint32_t reserved_bytes = 32;  // the struct, rounded up to keep the stack aligned
  static_assert(reserved_bytes >= sizeof(PayloadStruct) && reserved_bytes % 16 == 0, "the stack stays aligned");
  SPL_ASSERT(stack.size() > reserved_bytes, "stack of ", stack.size(), " B");
  const PayloadStruct payload{her.payload.length, her.offset, SPL_HPU_PACKET_BASE, 0};
  std::memcpy(stack.data() + stack.size() - reserved_bytes, &payload, sizeof payload);
  arguments.registers = {top - reserved_bytes, SPL_HPU_STATE_BASE, 0, 0};
  arguments.stack_pointer = top - reserved_bytes;
  return arguments;
}

HandlerCall decode_call(const std::array<uint32_t, SPL_CMD_WORDS>& words, const hpu::AddressSpace& memory) {
  HandlerCall call;
  call.call = words[0] & 0xffu;
  call.options = words[0] & ~0xffu;
  switch (call.call) {
    case SPL_CALL_DMA_TO_HOST_NB:
    case SPL_CALL_DMA_TO_HOST_B:
    case SPL_CALL_DMA_FROM_HOST_NB:
    case SPL_CALL_DMA_FROM_HOST_B: {
      call.offset = words[2] | static_cast<uint64_t>(words[3]) << 32;
      call.length = words[4];
      const uint8_t* bytes = memory.read(words[1], words[4]);
      call.local_memory = bytes == nullptr && call.length > 0 ? LocalMemory::outside : kind_of(words[1]);
      call.local = const_cast<uint8_t*>(bytes);  // written only for DMA from host, which checks for `state`
      break;
    }
    case SPL_CALL_DMA_TEST:
    case SPL_CALL_DMA_WAIT: call.handle = words[1]; break;
    case SPL_CALL_CT_INC:
      call.success = words[1];
      call.failure = words[2];
      break;
    default: break;
  }
  return call;
}

}  // namespace spinloom::nic
