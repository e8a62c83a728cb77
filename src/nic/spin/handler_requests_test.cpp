// Calls of handlers: which DMAs are issued, which are refused, and when a call is answered.
#include "nic/spin/handler_requests.hpp"

#include <gtest/gtest.h>

#include <array>
#include <variant>

#include "spinloom/handler.h"

namespace spinloom::spin {
namespace {

// The actions of an engine without a network.
using RequestAction = std::variant<Resume, DmaWrite, DmaRead, DmaAtomic, LocalAtomic, DebugLine>;
using RequestActions = ActionList<RequestAction>;

struct HandlerRequestsTest : testing::Test {
  HandlerRequestsTest() {
    Execution& one = executions.open({1, 0}, HandlerKind::payload, ContextId{0});
    her = one.her.id;
    executions.ready(one);
    executions.start(one, HpuId{0});
    range = {host.data(), host.size(), {}};
    call.call = SPL_CALL_DMA_TO_HOST_NB;
    call.local_memory = LocalMemory::packet;
    call.local = local.data();
    call.length = 8;
  }
  CallResult dma() { return requests.dma(executions[her], call, queue, range, false, out); }
  template <class T>
  const T* find() const {
    for (const RequestAction& action : out.list) {
      if (const T* one = std::get_if<T>(&action)) return one;
    }
    return nullptr;
  }

  PacketBuffer buffer{64};
  Executions executions{buffer};
  DmaTracker dmas;
  HandlerRequests requests{dmas};
  DmaQueue queue;
  HerId her;
  std::array<uint8_t, 16> host{};
  alignas(8) std::array<uint8_t, 16> local{};
  HostRange range;
  HandlerCall call;
  RequestActions out;
};

TEST_F(HandlerRequestsTest, ADmaIsIssuedAndItsHandleAnswered) {
  call.offset = 4;
  EXPECT_EQ(dma(), CallResult::performed);
  const auto* write = find<DmaWrite>();
  ASSERT_NE(write, nullptr);
  EXPECT_EQ(write->host, host.data() + 4);
  EXPECT_EQ(write->source.bytes, local.data());
  ASSERT_NE(find<Resume>(), nullptr);
  EXPECT_TRUE(dmas.is_open(find<Resume>()->value, her));
  EXPECT_EQ(queue.open, 1u);
  EXPECT_EQ(executions[her].dmas_open, 1u);
}

TEST_F(HandlerRequestsTest, WhatLeavesTheRangeIsRefusedAndNothingIsIssued) {
  call.offset = 9;
  EXPECT_EQ(dma(), CallResult::refused);
  EXPECT_EQ(find<DmaWrite>(), nullptr);
  EXPECT_EQ(find<Resume>()->value, DmaId::none_value);
  call.call = SPL_CALL_DMA_TO_HOST_B;
  out.clear();
  EXPECT_EQ(dma(), CallResult::refused);
  EXPECT_EQ(find<Resume>()->value, uint32_t{SEGV});
  EXPECT_EQ(queue.open, 0u);
}

TEST_F(HandlerRequestsTest, OptionsThatDoNotExistStopTheHandler) {
  call.options = 1u << 30;
  EXPECT_EQ(dma(), CallResult::stop_handler);
  EXPECT_TRUE(out.list.empty());
}

TEST_F(HandlerRequestsTest, AStackIsASourceOnlyForOneThatWaits) {
  call.local_memory = LocalMemory::stack;
  EXPECT_EQ(dma(), CallResult::refused);
  call.call = SPL_CALL_DMA_TO_HOST_B;
  out.clear();
  EXPECT_EQ(dma(), CallResult::performed);
  EXPECT_EQ(find<Resume>(), nullptr);  // answered when the source has been read
}

TEST_F(HandlerRequestsTest, APacketIsWrittenOnlyByWhoFillsIt) {
  call.call = SPL_CALL_DMA_FROM_HOST_NB;
  EXPECT_EQ(dma(), CallResult::refused);
  out.clear();
  EXPECT_EQ(requests.dma(executions[her], call, queue, range, true, out), CallResult::performed);
  EXPECT_NE(find<DmaRead>(), nullptr);
}

TEST_F(HandlerRequestsTest, OverAListThereIsOneTransferAPiece) {
  const std::array<IovecElement, 2> elements{{{host.data(), 3}, {host.data() + 8, 8}}};
  const std::vector<uint64_t> ends = ends_of(elements);
  range = {nullptr, 11, {elements, ends}};
  EXPECT_EQ(dma(), CallResult::performed);
  std::vector<const DmaWrite*> writes;
  for (const RequestAction& action : out.list) {
    if (const auto* write = std::get_if<DmaWrite>(&action)) writes.push_back(write);
  }
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0]->source.length, 3u);
  EXPECT_EQ(writes[1]->host, host.data() + 8);
  EXPECT_EQ(writes[1]->source.bytes, local.data() + 3);
  EXPECT_EQ(writes[1]->source.length, 5u);
  EXPECT_EQ(queue.open, 1u);
}

// Rules: SPIN-7.11.
TEST_F(HandlerRequestsTest, AtomicsNeedAlignmentAndAWidthThatExists) {
  call.call = SPL_CALL_DMA_FADD_NB;
  call.local_memory = LocalMemory::state;
  call.width = 4;
  const auto misaligned = reinterpret_cast<uint64_t>(host.data()) % 4;
  call.offset = (4 - misaligned) % 4;
  EXPECT_EQ(requests.dma_atomic(executions[her], call, queue, range, out), CallResult::performed);
  EXPECT_EQ(find<DmaAtomic>()->width, 4u);
  ++call.offset;
  EXPECT_EQ(requests.dma_atomic(executions[her], call, queue, range, out), CallResult::refused);
  call.width = 3;
  EXPECT_EQ(requests.dma_atomic(executions[her], call, queue, range, out), CallResult::stop_handler);
}

TEST_F(HandlerRequestsTest, WaitingIsAnsweredByTheEndOrAtOnce) {
  ASSERT_EQ(dma(), CallResult::performed);
  call.handle = find<Resume>()->value;
  const DmaId issued = find<DmaWrite>()->dma;
  out.clear();
  call.call = SPL_CALL_DMA_TEST;
  EXPECT_EQ(requests.dma_wait(executions[her], call, out), CallResult::performed);
  EXPECT_EQ(find<Resume>()->value, 0u);
  out.clear();
  call.call = SPL_CALL_DMA_WAIT;
  EXPECT_EQ(requests.dma_wait(executions[her], call, out), CallResult::performed);
  EXPECT_EQ(find<Resume>(), nullptr);
  EXPECT_TRUE(dmas.end(issued)->resumes);
  EXPECT_EQ(requests.dma_wait(executions[her], call, out), CallResult::performed);
  EXPECT_EQ(find<Resume>()->value, uint32_t{SUCCESS});
}

TEST_F(HandlerRequestsTest, AnAtomicOnNicMemoryIsOfTheStateOnly) {
  call.call = SPL_CALL_HPU_FADD;
  call.local_memory = LocalMemory::state;
  EXPECT_EQ(requests.local_atomic(executions[her], call, out), CallResult::performed);
  EXPECT_NE(find<LocalAtomic>(), nullptr);
  call.local_memory = LocalMemory::constants;
  EXPECT_EQ(requests.local_atomic(executions[her], call, out), CallResult::refused);
  call.local = local.data() + 1;
  EXPECT_EQ(requests.local_atomic(executions[her], call, out), CallResult::stop_handler);
}

TEST_F(HandlerRequestsTest, ADebugLineNamesItsHandler) {
  std::copy_n("hello", 5, local.begin());
  call.length = 5;
  call.operand = 42;
  EXPECT_EQ(requests.debug(executions[her], call, out), CallResult::performed);
  ASSERT_NE(find<DebugLine>(), nullptr);
  EXPECT_EQ(find<DebugLine>()->text, "hello");
  EXPECT_EQ(find<DebugLine>()->hpu, HpuId{0});
  call.local = nullptr;
  EXPECT_EQ(requests.debug(executions[her], call, out), CallResult::refused);
}

}  // namespace
}  // namespace spinloom::spin
