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

template <class Offset, class Run, size_t... number>
constexpr TableKernels<Offset, Run> tables_of(std::index_sequence<number...>) {
  return {{{&pack_list<typename ClassOf<number>::Type, Offset>...}},
          {{&unpack_list<typename ClassOf<number>::Type, Offset>...}},
          {{&copy_list<typename ClassOf<number>::Type, Offset>...}},
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
          {{{{&copy_rows<typename ClassOf<number>::Type, Mode::pack>...}},
            {{&copy_rows<typename ClassOf<number>::Type, Mode::unpack>...}},
            {{&copy_rows<typename ClassOf<number>::Type, Mode::copy>...}}}},
          {{{{&copy_one_row<typename ClassOf<number>::Type, Mode::pack>...}},
            {{&copy_one_row<typename ClassOf<number>::Type, Mode::unpack>...}},
            {{&copy_one_row<typename ClassOf<number>::Type, Mode::copy>...}}}},
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
