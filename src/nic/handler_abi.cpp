#include "nic/handler_abi.hpp"

#include <cstring>
#include <tuple>
#include <utility>

namespace spinloom::nic {
namespace {

// ptl_payload_t of spinloom/handler.h as RV32 lays it out.
struct PayloadStruct {
  uint64_t length;
  uint64_t offset;
  uint32_t base;
  uint32_t padding;
  uint64_t entry_offset;
};
static_assert(sizeof(PayloadStruct) == 32, "as the RV32 compiler lays out ptl_payload_t");

// ptl_header_t, likewise.
struct HeaderStruct {
  uint32_t type;
  uint32_t padding;
  uint64_t length;
  uint32_t target[2];
  uint32_t source[2];
  uint64_t match_bits;
  uint64_t offset;
  uint64_t hdr_data;
  uint32_t user_hdr;
  uint32_t user_hdr_length;
};
static_assert(sizeof(HeaderStruct) == 64, "as the RV32 compiler lays out ptl_header_t");

// ptl_request_type_t.
uint32_t request_type(Operation operation) {
  switch (operation) {
    case Operation::get: return 1;
    case Operation::atomic:
    case Operation::fetch_atomic: return 2;
    default: return 0;
  }
}

// Puts a struct on top of the stack; a0 points to it.
template <class Struct>
HandlerArguments by_reference(const Struct& argument, std::span<uint8_t> stack) {
  constexpr uint32_t reserved_bytes = (sizeof(Struct) + 15) / 16 * 16;  // the stack stays aligned
  SPL_ASSERT(stack.size() > reserved_bytes, "stack of ", stack.size(), " B");
  std::memcpy(stack.data() + stack.size() - reserved_bytes, &argument, sizeof argument);
  const uint32_t top = SPL_HPU_STACK_BASE + static_cast<uint32_t>(stack.size());
  HandlerArguments arguments;
  arguments.registers = {top - reserved_bytes, SPL_HPU_STATE_BASE, 0, 0};
  arguments.stack_pointer = top - reserved_bytes;
  return arguments;
}

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
  if (her.kind == HandlerKind::payload) {
    return by_reference(PayloadStruct{her.payload.length, her.offset, SPL_HPU_PACKET_BASE, 0, her.entry_offset}, stack);
  }
  if (her.kind == HandlerKind::header) {
    HeaderStruct header{};
    header.type = request_type(her.operation);
    header.length = her.message_length;
    header.target[0] = her.target.value;
    header.source[0] = her.source.value;
    header.match_bits = her.match_bits;
    header.offset = her.entry_offset;
    header.hdr_data = her.hdr_data;
    header.user_hdr = SPL_HPU_PACKET_BASE;
    header.user_hdr_length = static_cast<uint32_t>(her.payload.length);
    return by_reference(header, stack);
  }
  HandlerArguments arguments;
  arguments.registers = {static_cast<uint32_t>(her.dropped_bytes), her.flow_control ? 1u : 0u, SPL_HPU_STATE_BASE, 0};
  arguments.stack_pointer = SPL_HPU_STACK_BASE + static_cast<uint32_t>(stack.size());
  return arguments;
}

HandlerCall decode_call(const std::array<uint32_t, SPL_CMD_WORDS>& words, const hpu::AddressSpace& memory) {
  const auto wide = [&words](size_t first) { return words[first] | static_cast<uint64_t>(words[first + 1]) << 32; };
  // The bytes that an address names and the kind of memory they lie in; written only where the call may.
  const auto local = [&memory](uint32_t address, uint64_t bytes) -> std::pair<uint8_t*, LocalMemory> {
    const uint8_t* found = bytes > UINT32_MAX ? nullptr : memory.read(address, static_cast<uint32_t>(bytes));
    if (found == nullptr && bytes > 0) return {nullptr, LocalMemory::outside};
    return {const_cast<uint8_t*>(found), kind_of(address)};
  };
  HandlerCall call;
  call.call = words[0] & 0xffu;
  call.options = words[0] & ~0xffu;
  switch (call.call) {
    case SPL_CALL_DMA_TO_HOST_NB:
    case SPL_CALL_DMA_TO_HOST_B:
    case SPL_CALL_DMA_FROM_HOST_NB:
    case SPL_CALL_DMA_FROM_HOST_B:
      call.offset = wide(2);
      call.length = words[4];
      std::tie(call.local, call.local_memory) = local(words[1], call.length);
      break;
    case SPL_CALL_DMA_CAS_NB:
    case SPL_CALL_DMA_CAS_B:
    case SPL_CALL_DMA_FADD_NB:
    case SPL_CALL_DMA_FADD_B:
      call.offset = wide(2);
      call.width = words[4];
      call.compare = wide(5);
      call.operand = wide(7);
      std::tie(call.local, call.local_memory) = local(words[1], sizeof(uint64_t));
      break;
    case SPL_CALL_DMA_TEST:
    case SPL_CALL_DMA_WAIT: call.handle = words[1]; break;
    case SPL_CALL_CT_INC:
    case SPL_CALL_CT_SET:
      call.success = wide(1);
      call.failure = wide(3);
      break;
    case SPL_CALL_CT_GET: std::tie(call.local, call.local_memory) = local(words[5], 2 * sizeof(uint64_t)); break;
    case SPL_CALL_HPU_CAS:
    case SPL_CALL_HPU_FADD:
      call.compare = wide(5);
      call.operand = wide(7);
      std::tie(call.local, call.local_memory) = local(words[1], sizeof(uint64_t));
      if (words[2] != 0) std::tie(call.before, call.before_memory) = local(words[2], sizeof(uint64_t));
      break;
    case SPL_CALL_PUT_FROM_DEVICE:
    case SPL_CALL_PUT_FROM_HOST:
    case SPL_CALL_GET_FROM_DEVICE:
    case SPL_CALL_GET_FROM_HOST:
    case SPL_CALL_ATOMIC_FROM_DEVICE:
    case SPL_CALL_ATOMIC_FROM_HOST:
    case SPL_CALL_FETCH_ATOMIC_FROM_DEVICE:
      call.length = words[4];
      call.target = words[5];
      call.match_bits = wide(6);
      call.remote_offset = wide(8);
      call.hdr_data = wide(10);
      call.user_ptr = wide(12);
      call.atomic = static_cast<AtomicOperation>(words[15] & 0xffu);
      call.datatype = static_cast<Datatype>(words[15] >> 8 & 0xffu);
      if (is_from_host(call.call)) {
        call.offset = wide(2);
        call.length |= static_cast<uint64_t>(words[14]) << 32;
      } else {
        call.operand = wide(2);
        std::tie(call.local, call.local_memory) = local(words[1], call.length);
      }
      break;
    case SPL_CALL_DEBUG:
      call.operand = words[2];
      call.local = const_cast<uint8_t*>(memory.read(words[1], 1));
      while (call.length < limits::debug_text_bytes) {
        const uint8_t* byte = memory.read(words[1] + static_cast<uint32_t>(call.length), 1);
        if (byte == nullptr || *byte == 0) break;
        ++call.length;
      }
      break;
    default: break;
  }
  return call;
}

}  // namespace spinloom::nic
