// Action - an engine's requests to its driver for handlers: to run them, answer their calls, and move bytes for them.
//
// Contract: as nic/portals/action.hpp; an engine's actions are a variant of these, of its own RunHandler, and of what
//   its network needs. The engine never waits: the driver reports the end of an action that takes time by one of its
//   on_... calls.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "nic/spin/context.hpp"
#include "nic/spin/ids.hpp"
#include "nic/spin/payload.hpp"

namespace spinloom::spin {

// Copies a packet into the packet buffer (0 bytes: the packet is in its place already) and takes it to the scheduler.
// The driver then calls on_her_ready(her).
struct BufferPacket {
  HerId her;
  uint64_t bytes = 0;
};
// Answers a handler's call.
struct Resume {
  HerId her;
  uint32_t value = 0;
};
// The source of the host address of a write.
enum class Scatter : uint8_t {
  none,  // no scatter list
  held,  // an element of the scatter list that the NIC holds
  refill,  // the first of the next elements that the NIC holds at a time, which the NIC must read from the host first
};
// Writes to host memory, from a packet (default path) or for a handler. The source is read when the DMA is served.
// The driver calls on_dma_done(dma) at the end; if the write blocks its handler, it calls on_dma_read(dma) before
// that, when the source has been read.
struct DmaWrite {
  DmaId dma;
  uint8_t* host = nullptr;
  PayloadRef source;
  HerId her;
  Scatter scatter = Scatter::none;
  bool blocking = false;
};
// Reads from host memory into a handler's memory. The driver calls on_dma_done(dma) when the bytes are there.
struct DmaRead {
  DmaId dma;
  const uint8_t* host = nullptr;
  uint8_t* nic = nullptr;
  uint64_t length = 0;
  HerId her;
};
// Performs an operation on host memory, indivisibly. `width` bytes at `host`, naturally aligned, are copied to
// `before` (8 bytes, zero-extended) and then replaced: compare_swap stores `operand` if they equal `compare`,
// fetch_add stores their sum with `operand`. The driver calls on_dma_done(dma) when `before` is there.
enum class AtomicKind : uint8_t { compare_swap, fetch_add };
struct DmaAtomic {
  DmaId dma;
  AtomicKind kind = AtomicKind::fetch_add;
  uint8_t* host = nullptr;
  uint32_t width = 8;
  uint64_t compare = 0;
  uint64_t operand = 0;
  uint8_t* before = nullptr;
  HerId her;
};
// Copies a packet's bytes into the memory of a waiting handler. The driver calls on_dma_done(dma) at the end.
struct StorePacket {
  DmaId dma;
  uint8_t* local = nullptr;
  PayloadRef source;
  HerId her;
};
// Does what DmaAtomic does, at once, on 8 bytes of handler memory. The answer to the handler's call is 1 if
// compare_swap has swapped, otherwise 0.
struct LocalAtomic {
  AtomicKind kind = AtomicKind::fetch_add;
  uint8_t* local = nullptr;
  uint64_t compare = 0;
  uint64_t operand = 0;
  uint8_t* before = nullptr;  // null: the caller does not want the value
  HerId her;
};
// Stores words into a running handler's memory before its call is answered.
struct StoreLocal {
  uint8_t* local = nullptr;
  std::array<uint64_t, 2> words{};
};
// A line of text that a handler prints for its author.
struct DebugLine {
  HandlerKind kind = HandlerKind::payload;
  HpuId hpu;
  std::string text;
  uint32_t value = 0;
};
// Writes to NIC memory the bytes that the host sent along with a command.
struct WriteNicMemory {
  uint64_t offset = 0;
  std::vector<uint8_t> bytes;
};

// The actions of one call, of the kinds of the variant `Action`. Reused between calls: clear() keeps the storage.
template <class Action>
struct ActionList {
  std::vector<Action> list;

  // Makes an action in its place. Most actions are far smaller than the largest, and a copy would wait for the bytes
  // just written.
  template <class T, class... Parts>
  T& add(Parts&&... parts) {
#ifdef __cpp_aggregate_paren_init
    return *std::get_if<T>(&list.emplace_back(std::in_place_type<T>, std::forward<Parts>(parts)...));
#else  // Clang before 16
    return *std::get_if<T>(&list.emplace_back(T{std::forward<Parts>(parts)...}));
#endif
  }

  void clear() { list.clear(); }
};

}  // namespace spinloom::spin
