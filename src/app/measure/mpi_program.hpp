// MpiProgram - writes the constructor calls of a datatype as a list of numbers, for a program that has an MPI.
//
// Contract: postfix, 64-bit words: a primitive pushes (0, bytes); a constructor pops its children, the last one on top,
//   and pushes the new type: (code, arguments ...), as python/spinloom/bench/mpi_row.h reads them. A dup adds nothing;
//   a darray is an Error.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::app {

Result<std::vector<int64_t>> mpi_program(const layout::Type& type);

}  // namespace spinloom::app
