// Pair - two processes that move messages between memories of their GPUs, layout to layout, by the best way that works
// between these two.
//
// Contract: both call connect() over a channel that joins them. Each describes itself, the other tries what is
//   described:
//     ipc      each maps the other's memory by CUDA IPC and has read a token there. A message is one kernel of the
//              receiver, which loads from the sender's memory by the sender's layout and stores by its own.
//     staged   both have mapped the same pinned memory of the host. A message is packed by one kernel, goes through
//              pieces, of which the next are filled while one is emptied, and is unpacked by one kernel.
//     packed   packed bytes go through the channel.
//   The first that works is taken; reason() is a sentence that says why. SPINLOOM_GPU_PEER, or options.way, forces one,
//   at one process or at both: then it is that or an Error with the reason.
//   A message: one process sends, the other receives. Both name memory by a layout, a count and an address; packed
//   sizes must be equal. begin_send() takes what was on `stream` before into account; once the move is over the memory
//   may be written again. The kernel of a receive is put on its `stream` once the offer has come, by test() or wait();
//   the move is over when the bytes are there. A process may send and receive at once, one move in each direction;
//   moves go on while their process calls test() or wait() of either. Where the way is ipc, memory that another process
//   cannot map, of a pool or pinned, is sent as packed bytes; if ipc was forced, it is an Error.
// Errors: what is wrong with one message (memory of the host, freed, too short, of another device; other sizes) is an
//   Error at both processes, and the pair goes on. A peer that has ended, or a channel that breaks, ends the pair: this
//   and all later moves are Errors, at once. connect() waits `patience_ms` for the other process.
// Threads: one at a time a pair. Time: host time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/message.hpp"
#include "memory/gpu/pair_channel.hpp"

namespace spinloom::gpu {

enum class PairWay : uint8_t { ipc, staged, packed };

[[nodiscard]] const char* name_of(PairWay way);

struct PairOptions {
  std::string way;  // auto, ipc, staged or packed; empty: SPINLOOM_GPU_PEER, else auto
  int patience_ms = 60'000;
  size_t piece_bytes = size_t{1} << 20;  // a multiple of 64
  int pieces = 4;  // pieces of each direction, 2 or more
};

// A message under way. It may be dropped once it is over. If it is dropped before, the pair has ended, too.
class PairMove {
 public:
  // Takes the next steps that need no waiting. True: the move is over.
  [[nodiscard]] Result<bool> test();
  [[nodiscard]] Status wait();
  // Waits at most about `patience_ms`. True: the move is over.
  [[nodiscard]] Result<bool> wait_for(int patience_ms);
  [[nodiscard]] PairWay way() const;  // the way of this message, once its offer has been seen

  struct State;
  explicit PairMove(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  friend class Pair;

  std::shared_ptr<State> state_;
};

class Pair {
 public:
  static Result<Pair> connect(const Device& device, std::shared_ptr<PairChannel> channel,
                              const PairOptions& options = {});

  [[nodiscard]] PairWay way() const;
  [[nodiscard]] const std::string& reason() const;
  [[nodiscard]] const Device& device() const;

  [[nodiscard]] Result<PairMove> begin_send(const Side& from, const void* base, Stream stream = nullptr);
  [[nodiscard]] Result<PairMove> begin_receive(const Side& to, void* base, Stream stream = nullptr);
  [[nodiscard]] Status send(const Side& from, const void* base, Stream stream = nullptr);
  [[nodiscard]] Status receive(const Side& to, void* base, Stream stream = nullptr);

  struct State;

 private:
  explicit Pair(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace spinloom::gpu
