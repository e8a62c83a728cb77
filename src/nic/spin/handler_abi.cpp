#include "nic/spin/handler_abi.hpp"

#include <cstring>

namespace spinloom::spin {
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

// ptl_header_t of spinloom/handler.h as RV32 lays it out.
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

// Puts a struct on top of the stack; a0 points to it, a1 to the context's state.
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

class AddressedMemory final : public CallMemory {
 public:
  AddressedMemory(const CallWords& words, const hpu::AddressSpace& memory) : words_(words), memory_(memory) {}

  [[nodiscard]] bool is_nonnull(unsigned word) const override { return words_[word] != 0; }
  [[nodiscard]] Range range(unsigned word, uint64_t length) const override {
    const uint8_t* bytes = length > UINT32_MAX ? nullptr : memory_.read(words_[word], static_cast<uint32_t>(length));
    if (bytes == nullptr && length > 0) return {};
    return {const_cast<uint8_t*>(bytes), kind_of(words_[word])};
  }
  [[nodiscard]] const uint8_t* byte(unsigned word, uint64_t index) const override {
    return memory_.read(words_[word] + static_cast<uint32_t>(index), 1);
  }

 private:
  const CallWords& words_;
  const hpu::AddressSpace& memory_;
};

}  // namespace

HandlerArguments arguments_of(const Her& her, std::span<uint8_t> stack) {
  if (her.kind == HandlerKind::payload) {
    return by_reference(PayloadStruct{her.payload.length, her.offset, SPL_HPU_PACKET_BASE, 0, her.entry_offset}, stack);
  }
  if (her.kind == HandlerKind::header) {
    HeaderStruct header{};
    header.type = static_cast<uint32_t>(her.request);
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
  if (her.kind == HandlerKind::mail) return by_reference(mail_of(her), stack);
  HandlerArguments arguments;
  if (her.kind == HandlerKind::initialise) {
    arguments.registers = {SPL_HPU_STATE_BASE, 0, 0, 0};
  } else {
    arguments.registers = {static_cast<uint32_t>(her.dropped_bytes), her.flow_control ? 1u : 0u, SPL_HPU_STATE_BASE, 0};
  }
  arguments.stack_pointer = SPL_HPU_STACK_BASE + static_cast<uint32_t>(stack.size());
  return arguments;
}

HandlerCall decode_call(const CallWords& words, const hpu::AddressSpace& memory) {
  return decode_call(words, AddressedMemory(words, memory));
}

HandlerCall decode_call(const CallWords& words, const CallMemory& memory) {
  const auto word64 = [&words](size_t first) { return words[first] | static_cast<uint64_t>(words[first + 1]) << 32; };
  HandlerCall call;
  call.call = words[0] & 0xffu;
  call.options = words[0] & ~0xffu;
  const auto local = [&](unsigned word, uint64_t length) {
    const CallMemory::Range range = memory.range(word, length);
    call.local = range.bytes;
    call.local_memory = range.memory;
  };
  switch (call.call) {
    case SPL_CALL_DMA_TO_HOST_NB:
    case SPL_CALL_DMA_TO_HOST_B:
    case SPL_CALL_DMA_FROM_HOST_NB:
    case SPL_CALL_DMA_FROM_HOST_B:
      call.offset = word64(2);
      call.length = words[4];
      local(1, call.length);
      break;
    case SPL_CALL_DMA_CAS_NB:
    case SPL_CALL_DMA_CAS_B:
    case SPL_CALL_DMA_FADD_NB:
    case SPL_CALL_DMA_FADD_B:
      call.offset = word64(2);
      call.width = words[4];
      call.compare = word64(5);
      call.operand = word64(7);
      local(1, sizeof(uint64_t));
      break;
    case SPL_CALL_DMA_TEST:
    case SPL_CALL_DMA_WAIT: call.handle = words[1]; break;
    case SPL_CALL_CT_INC:
    case SPL_CALL_CT_SET:
      call.success = word64(1);
      call.failure = word64(3);
      break;
    case SPL_CALL_CT_GET: local(5, 2 * sizeof(uint64_t)); break;
    case SPL_CALL_HPU_CAS:
    case SPL_CALL_HPU_FADD:
      call.compare = word64(5);
      call.operand = word64(7);
      local(1, sizeof(uint64_t));
      if (memory.is_nonnull(2)) {
        const CallMemory::Range before = memory.range(2, sizeof(uint64_t));
        call.before = before.bytes;
        call.before_memory = before.memory;
      }
      break;
    case SPL_CALL_PUT_FROM_DEVICE:
    case SPL_CALL_PUT_FROM_HOST:
    case SPL_CALL_GET_FROM_DEVICE:
    case SPL_CALL_GET_FROM_HOST:
    case SPL_CALL_ATOMIC_FROM_DEVICE:
    case SPL_CALL_ATOMIC_FROM_HOST:
    case SPL_CALL_FETCH_ATOMIC_FROM_DEVICE:
    case SPL_CALL_PROCESS_PUT:
      call.length = words[4];
      call.target = words[5];
      call.match_bits = word64(6);
      call.remote_offset = word64(8);
      call.hdr_data = word64(10);
      call.user_ptr = word64(12);
      call.context = words[15];
      call.atomic = static_cast<AtomicOperation>(words[15] & 0xffu);
      call.datatype = static_cast<Datatype>(words[15] >> 8 & 0xffu);
      if (is_from_host(call.call)) {
        call.offset = word64(2);
        call.length |= static_cast<uint64_t>(words[14]) << 32;
      } else {
        call.operand = word64(2);
        local(1, call.length);
      }
      break;
    case SPL_CALL_SEND_FRAME:
      call.length = words[4];
      local(1, call.length);
      break;
    case SPL_CALL_TELEMETRY: call.operand = words[1]; break;
    case SPL_CALL_MAIL:
      call.context = words[1];
      call.operand = word64(2);
      call.handle = words[4];
      break;
    case SPL_CALL_DEBUG:
      call.operand = words[2];
      call.local = const_cast<uint8_t*>(memory.byte(1, 0));
      while (call.length < limits::debug_text_bytes) {
        const uint8_t* byte = memory.byte(1, call.length);
        if (byte == nullptr || *byte == 0) break;
        ++call.length;
      }
      break;
    default: break;
  }
  return call;
}

}  // namespace spinloom::spin
