// Program - a set of messages as parts and tables that the kernels run over; made on the host, without a GPU.
//
// Contract: make() decides once which kernel moves which part, and lays down all that kernels read. Names of kernels,
//   also in SPINLOOM_GPU_KERNEL, which forces one where it can do the part (others stay as chosen):
//     word    a thread a word of a block, the widest that addresses and blocks allow: nested loops and lists of offsets
//     warp    a warp a block, for long blocks; takes any alignment
//     tile    two levels through shared memory, where the two sides run through memory in different orders
//     pieces  a table of pieces, found by a hint and a short search: runs, structs, pairs of layouts
//     walk    each word seeks in the blob: anything, and no tables
//   An unknown name is an Error that lists them.
// Invariants: (1) every packed byte of every message is moved by exactly one thread; (2) the same messages and options
//   give the same program; (3) device_bytes(): what lies on the device is the parts, 4 B for each tile of several
//   parts, blobs, tables of listed offsets, and tables of pieces. A piece takes 20 B, or 28 B with offsets of 64 bits
//   on both sides; pieces_bytes_max holds for either.
// Threads: immutable; copies share. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "memory/gpu/message.hpp"

namespace spinloom::gpu {

inline constexpr std::string_view kernel_names[] = {"word", "warp", "tile", "pieces", "walk"};
inline constexpr uint32_t ends_max = 224;  // pairs of addresses of one launch; a set may have any number of messages

struct ProgramOptions {
  std::string kernel;  // empty: SPINLOOM_GPU_KERNEL, else chosen by shape
  bool streaming = false;  // unpacked bytes leave the device's cache first: for memory that is not read soon
  int64_t pieces_bytes_max = int64_t{256} << 20;  // the limit of one table of pieces
};

class Program {
 public:
  static Result<Program> make(std::span<const Message> messages, const ProgramOptions& options = {});

  [[nodiscard]] int64_t bytes() const;  // packed bytes of all messages
  // An estimate of the memory traffic in whole sectors of 32 B; a sector that is written in part is read, too.
  [[nodiscard]] int64_t bytes_touched() const;
  [[nodiscard]] int64_t device_bytes() const;  // bytes on the device, tables and blobs
  [[nodiscard]] int launches() const;  // 1, or 0 for a set without bytes
  [[nodiscard]] uint32_t ends_count() const;  // pairs of addresses that a launch takes
  [[nodiscard]] std::string kernel_name() const;  // "word", or "set(tile, word)" where parts differ
  // Returns what limits the speed: "launch" (small), "sectors" (short blocks far apart) or "bandwidth".
  [[nodiscard]] std::string bottleneck() const;

  struct Body;
  [[nodiscard]] const Body& body() const { return *body_; }

 private:
  explicit Program(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

  std::shared_ptr<const Body> body_;
};

}  // namespace spinloom::gpu
