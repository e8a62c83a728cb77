// LayoutBench - one row of the layout bench: our copies, the loop that a user would write, and memcpy.
//
// Contract: create() commits both types, loads the hand loops from a library built from python/spinloom/bench/hand.c,
//   and allocates memory filled with pattern(). Our way is what spl_layout_pack(), _unpack() and _copy() call. check()
//   runs one way once over fresh memory and compares the whole destination and its guards with the oracle; it passes
//   memcpy unchecked. time() returns host times, in ns a call. hash() is the value that a peer in another process must
//   get from the same pattern: of the packed bytes (pack), or of the whole destination without guards (unpack and
//   copy).
// Threads: one owner. Time: host time only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/measure/hand_plan.hpp"
#include "base/result.hpp"
#include "memory/layout/committed.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::app {

enum class BenchOperation : uint8_t { pack, unpack, copy };
// hand_structs: a loop over structs whose fields the compiler knows. memory: memcpy of as many bytes.
enum class BenchWay : uint8_t { ours, hand_elements, hand_blocks, hand_structs, memory };

Result<BenchOperation> bench_operation_named(const std::string& name);
Result<BenchWay> bench_way_named(const std::string& name);

class LayoutBench {
 public:
  // `struct_loop` is the ending of the names of the library's loops over the row's structs; empty: there are none.
  static Result<LayoutBench> create(const std::string& type, const std::string& to, const std::string& hand_library,
                                    const std::string& struct_loop);

  [[nodiscard]] bool has(BenchOperation operation, BenchWay way) const;
  Status check(BenchOperation operation, BenchWay way);
  // Times `calls` calls together, `repetitions` times. If the message has at most 4 MiB, one call goes before, untimed.
  Result<std::vector<double>> time(BenchOperation operation, BenchWay way, int repetitions, int64_t calls);
  Result<uint64_t> hash(BenchOperation operation);
  // Writes both types as constructor calls: see mpi_program.hpp.
  Status write_program(const std::string& path) const;

  [[nodiscard]] int64_t bytes() const { return from_.type.size(); }
  // Cache lines that the operation reads or writes, including those of a packed side.
  [[nodiscard]] int64_t lines(BenchOperation operation) const;
  [[nodiscard]] int64_t block_bytes_min() const { return block_bytes_min_; }
  [[nodiscard]] std::string kernel(BenchOperation operation) const;

 private:
  struct GuardedFree {
    void operator()(std::byte* bytes) const;
  };
  using Memory = std::unique_ptr<std::byte, GuardedFree>;
  struct Side {
    layout::Type type;
    layout::Committed layout;
    HandPlan plan;  // a plan without parts where plan_of() makes no loops
    int64_t lines = 0;
  };
  struct HandLoops {
    void (*pack)(const HandPart*, int64_t, std::byte*, const std::byte*) = nullptr;
    void (*unpack)(const HandPart*, int64_t, const std::byte*, std::byte*) = nullptr;
    void (*copy)(const HandPart*, std::byte*, const HandPart*, const std::byte*, int64_t) = nullptr;
  };

  LayoutBench(Side from, Side to) : from_(std::move(from)), to_(std::move(to)) {}
  static Result<Side> side_of(const std::string& type_text);
  Status open_hand(const std::string& library, const std::string& struct_loop);
  // Makes one call, but not of BenchWay::memory. source, packed and target are the addresses that MPI would be given.
  Status run(BenchOperation operation, BenchWay way, std::byte* source, std::byte* packed, std::byte* target) const;
  [[nodiscard]] const Side& written_side(BenchOperation operation) const;
  Status expect(BenchOperation operation);
  void fill_sources();

  Side from_;
  Side to_;
  std::pair<HandPlan, HandPlan> matched_plans_;
  HandLoops element_loops_;
  HandLoops block_loops_;
  HandLoops struct_loops_;
  Memory source_, target_, packed_, memcpy_target_;
  std::optional<BenchOperation> expected_operation_;
  std::vector<std::byte> expected_;
  int64_t block_bytes_min_ = 0;
};

}  // namespace spinloom::app
