// Kernel loops - the source of every kernel set: included once by each kernel_SET.cpp, which is compiled for its
// instruction set. Its parts: kernel_blocks, kernel_grids, kernel_moves, kernel_structs, kernel_tables,
// kernel_transposes.
//
// Contract: defines `set_of(name)` in an anonymous namespace. Vectors are the compiler's own; what an instruction set
//   lacks becomes several narrower moves. Nothing here or in the parts may call an inline function of another header:
//   the linker could pick this file's copy of it for a CPU that cannot run it.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "memory/layout/kernel_blocks.hpp"
#include "memory/layout/kernel_grids.hpp"
#include "memory/layout/kernel_moves.hpp"
#include "memory/layout/kernel_structs.hpp"
#include "memory/layout/kernel_tables.hpp"
#include "memory/layout/kernel_transposes.hpp"

namespace spinloom::layout {
namespace {

// The entries of a set's arrays. Null: the set below makes the same code (kernel_sets.hpp).
template <size_t number>
struct KernelsOf {
  using Block = typename ClassOf<number>::Type;
  template <Mode mode>
  static constexpr bool is_own = is_own_class(number) || is_packed_in_vectors<Block, mode>();
  template <Mode mode>
  static constexpr bool is_lean = has_lean_kernels && (!is_shared_class(number) || is_packed_in_vectors<Block, mode>());

  template <Mode mode>
  static constexpr GridKernel grid() {
    if constexpr (!is_own<mode>) {
      return nullptr;
    } else if constexpr (is_lean<mode>) {
      return &copy_lean_rows<Block, mode>;
    } else {
      return &copy_rows<Block, mode>;
    }
  }
  template <Mode mode>
  static constexpr RowKernel row() {
    if constexpr (!is_own<mode>) {
      return nullptr;
    } else if constexpr (is_lean<mode>) {
      return &copy_lean_row<Block, mode>;
    } else {
      return &copy_one_row<Block, mode>;
    }
  }
  template <class Offset>
  static constexpr ListPack<Offset> pack() {
    if constexpr (is_own_class(number)) {
      return &pack_list<Block, Offset>;
    } else {
      return nullptr;
    }
  }
  template <class Offset>
  static constexpr ListPack<Offset> unpack() {
    if constexpr (is_own_class(number)) {
      return &unpack_list<Block, Offset>;
    } else {
      return nullptr;
    }
  }
  template <class Offset>
  static constexpr ListCopy<Offset> copy() {
    if constexpr (is_own_class(number)) {
      return &copy_list<Block, Offset>;
    } else {
      return nullptr;
    }
  }
};

template <class Offset, class Run, size_t... number>
constexpr TableKernels<Offset, Run> tables_of(std::index_sequence<number...>) {
  return {{{KernelsOf<number>::template pack<Offset>()...}},
          {{KernelsOf<number>::template unpack<Offset>()...}},
          {{KernelsOf<number>::template copy<Offset>()...}},
          &pack_runs<Run>,
          &unpack_runs<Run>,
          &pack_structs<Run>,
          &unpack_structs<Run>,
          &move_structs<Run>,
          &copy_tables<Offset, Run>};
}

template <size_t... number>
constexpr KernelSet make_set(const char* name, std::index_sequence<number...> all) {
  return {name,
          {{{{KernelsOf<number>::template grid<Mode::pack>()...}},
            {{KernelsOf<number>::template grid<Mode::unpack>()...}},
            {{KernelsOf<number>::template grid<Mode::copy>()...}}}},
          {{{{KernelsOf<number>::template row<Mode::pack>()...}},
            {{KernelsOf<number>::template row<Mode::unpack>()...}},
            {{KernelsOf<number>::template row<Mode::copy>()...}}}},
          tables_of<int32_t, spl_run_narrow>(all),
          tables_of<int64_t, spl_run_wide>(all),
          {{&transpose<1>, &transpose<2>, &transpose<4>, &transpose<8>, &transpose<16>}},
          all_moves(std::make_index_sequence<moves_kernel_count>()),
          windows_min - 1,
          &copy_piece,
          &paced_row,
          &stream_rows};
}

constexpr KernelSet set_of(const char* name) { return make_set(name, std::make_index_sequence<block_class_count>()); }

}  // namespace
}  // namespace spinloom::layout
