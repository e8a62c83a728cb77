#include "torture/handlers.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "spinloom/handler.h"

namespace spinloom::torture {
namespace {

using spin::HandlerOutcome;
using spin::NativeHandler;

Plan plan_of(const NativeHandler& handler) {
  Plan plan;
  SPL_ASSERT(handler.frame().constants.size() >= sizeof plan, handler.frame().constants.size(), " B of constants");
  std::memcpy(&plan, handler.frame().constants.data(), sizeof plan);
  return plan;
}

HandlerOutcome outcome_of(uint8_t end, uint32_t code) { return {static_cast<spin::HandlerEnd>(end), code, 1}; }

bool write(NativeHandler& handler, const Plan& plan, const uint8_t* from, uint64_t offset, uint64_t length) {
  if (plan.blocking == 0) return handler.dma_to_host(from, offset, length, PTL_DMA_NO_EVENT) != UINT32_MAX;
  uint8_t own[256];
  std::memcpy(own, from, length);
  spin::HandlerCall call;
  call.call = SPL_CALL_DMA_TO_HOST_B;
  call.options = PTL_DMA_NO_EVENT;
  call.local = own;
  call.local_memory = spin::LocalMemory::stack;
  call.offset = offset;
  call.length = length;
  return handler.call(call) == SUCCESS;
}

HandlerOutcome place_payload(NativeHandler& handler, FaultCounts& faults) {
  const Plan plan = plan_of(handler);
  const spin::Her& her = handler.frame().her;
  if (her.offset >= plan.bad_from_offset) {
    ++count_of(faults, Fault::handler);
    if (plan.outside != 0) handler.dma_to_host(handler.frame().packet.data(), uint64_t{1} << 40, 1, PTL_DMA_NO_EVENT);
    return outcome_of(plan.payload_end, plan.payload_code);
  }
  const auto packet = handler.frame().packet;
  for (uint64_t done = 0; done < packet.size();) {
    const uint64_t at = her.offset + done;
    const uint64_t within = at % plan.block;
    const uint64_t length = std::min<uint64_t>({plan.block - within, packet.size() - done, 256});
    if (!write(handler, plan, packet.data() + done, at / plan.block * plan.stride + within, length)) {
      return outcome_of(0, FAIL);
    }
    done += length;
  }
  return outcome_of(0, SUCCESS);
}

HandlerOutcome fill_packet(NativeHandler& handler, FaultCounts& faults) {
  const Plan plan = plan_of(handler);
  const spin::Her& her = handler.frame().her;
  if (her.offset >= plan.bad_from_offset) {
    ++count_of(faults, Fault::handler);
    return outcome_of(plan.payload_end, plan.payload_code);
  }
  const uint64_t length = handler.frame().packet.size();
  for (uint64_t done = 0; done < length;) {
    const uint64_t at = her.offset + done;
    const uint64_t within = at % plan.block;
    const uint64_t piece = std::min(plan.block - within, length - done);
    if (handler.dma_into_packet(at / plan.block * plan.stride + within, done, piece) == UINT32_MAX) {
      return outcome_of(0, FAIL);
    }
    done += piece;
  }
  return outcome_of(0, SUCCESS);
}

// Makes one call to the third rank, on bytes in the handler's own memory.
bool call_third_rank(NativeHandler& handler, const Plan& plan, uint32_t number, uint32_t which, uint64_t offset,
                     uint8_t* local, uint64_t length, spin::LocalMemory memory) {
  spin::HandlerCall call;
  call.call = number;
  call.local = local;
  call.local_memory = memory;
  call.length = length;
  call.target = static_cast<uint32_t>(plan.third_rank);
  call.match_bits = plan.third_bits + which;
  call.remote_offset = offset;
  call.atomic = spin::AtomicOperation::sum;
  call.datatype = spin::Datatype::uint64;
  return handler.call(call) == SUCCESS;
}

HandlerOutcome relay_packet(NativeHandler& handler) {
  const Plan plan = plan_of(handler);
  const auto packet = handler.frame().packet;
  const uint64_t offset = handler.frame().her.offset;
  auto* const bytes = const_cast<uint8_t*>(packet.data());  // the bytes are only read
  std::vector<uint8_t> fetched(packet.size());
  uint64_t increment = 1;
  const auto stack = spin::LocalMemory::stack;
  if (!call_third_rank(handler, plan, SPL_CALL_PUT_FROM_DEVICE, 1, offset, bytes, packet.size(),
                       spin::LocalMemory::packet) ||
      !call_third_rank(handler, plan, SPL_CALL_GET_FROM_DEVICE, 2, offset, fetched.data(), fetched.size(), stack)) {
    return outcome_of(0, FAIL);
  }
  spin::HandlerCall writing;
  writing.call = SPL_CALL_DMA_TO_HOST_B;
  writing.options = PTL_DMA_NO_EVENT;
  writing.local = fetched.data();
  writing.local_memory = stack;
  writing.offset = offset;
  writing.length = fetched.size();
  if (handler.call(writing) != SUCCESS) return outcome_of(0, FAIL);
  const bool added = call_third_rank(handler, plan, SPL_CALL_FETCH_ATOMIC_FROM_DEVICE, 3, 0,
                                     reinterpret_cast<uint8_t*>(&increment), sizeof increment, stack);
  return outcome_of(0, added ? SUCCESS : FAIL);
}

}  // namespace

Handlers::Handlers(FaultCounts& faults) {
  header = native_.add([&faults](NativeHandler& handler) {
    const Plan plan = plan_of(handler);
    const bool good = plan.header_code != SUCCESS && plan.header_code <= PROCEED_PENDING;
    if (plan.header_end != 0 || !good) ++count_of(faults, Fault::handler);
    return outcome_of(plan.header_end, plan.header_code);
  });
  payload = native_.add([&faults](NativeHandler& handler) { return place_payload(handler, faults); });
  completion = native_.add([&faults](NativeHandler& handler) {
    const Plan plan = plan_of(handler);
    if (plan.completion_end != 0 || (plan.completion_code != SUCCESS && plan.completion_code != SUCCESS_PENDING)) {
      ++count_of(faults, Fault::handler);
    }
    if (plan.completion_event != 0) handler.dma_to_host(nullptr, 0, 0, 0);
    return outcome_of(plan.completion_end, plan.completion_code);
  });
  forward = native_.add(relay_packet);
  gather = native_.add([&faults](NativeHandler& handler) { return fill_packet(handler, faults); });
}

}  // namespace spinloom::torture
