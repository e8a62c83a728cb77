// Call - a collective operation with its arguments, as one rank calls it, and the Graph that does it.
//
// Contract: memory and meaning are those of MPI; lengths are in bytes. `bytes` is all data of a broadcast, a reduction
//   or a scan, of other operations the block of one rank; operations with lists (gatherv, ..) have a Block for each
//   rank or neighbour instead, or a single Block for data that go to all or come from one rank. A broadcast's data are
//   in `receive` at all ranks. If `send` (for scatters `receive`) is null, the call is in place, unless the blocks of
//   its list are all empty. If `algorithm` is empty, make_call_graph() chooses from the operation, the number of ranks,
//   the bytes and the type, which are alike at all ranks. The call does not write to memory that it sends.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "portals/collective/catalogue.hpp"
#include "portals/collective/graph.hpp"
#include "portals/collective/model.hpp"

namespace spinloom::collective {

struct Call {
  struct Block {
    uint64_t bytes = 0;
    uint64_t at = 0;
  };
  Operation operation = Operation::barrier;
  std::string algorithm;
  uint32_t root = 0;
  uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
  uint64_t bytes = 0;
  std::vector<Block> sends;  // only of operations with lists
  std::vector<Block> receives;
  nic::AtomicOperation op = nic::AtomicOperation::sum;
  nic::Datatype type = nic::Datatype::int8;
  uint64_t segment_bytes = 0;  // 0: chosen
  std::vector<int32_t> sources;  // the sources of neighbourhood operations; -1: nobody
  std::vector<int32_t> destinations;
  bool is_grid = false;  // neighbours are in pairs, a pair for each dimension (MPI's Cartesian grid)
};

// The model of two processes that share memory, on NICs of this library. bench/offload_pingpong.c measured
// 2 (o + L + m) = 1.1 us for 8 B, G, and a and A of combinations of float64. How the 1.1 us are shared among o, L and m
// is assumed, and so are g, h and z.
inline constexpr Model live_model{.o_ps = 150'000,
                                  .L_ps = 200'000,
                                  .g_ps = 100'000,
                                  .h_ps = 100'000,
                                  .m_ps = 200'000,
                                  .z_ps = 150'000,
                                  .a_ps = 530'000,
                                  .G = {75, 1},
                                  .A = {328, 1}};

struct CallGraph {
  Graph graph;
  std::unique_ptr<uint8_t[]> memory;  // the Graph's own memory
  std::string_view algorithm;
};

// True for operations whose blocks may differ in size: the v and w forms, and reduce_scatter.
[[nodiscard]] bool has_lists(Operation operation);
[[nodiscard]] bool is_reduction(Operation operation);
// Makes the graph of the rank `rank` of `size` ranks. Returns an Error if the arguments do not fit together.
[[nodiscard]] Result<CallGraph> make_call_graph(const Call& call, uint32_t rank, uint32_t size);

}  // namespace spinloom::collective
