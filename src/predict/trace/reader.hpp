// Reader - recorded programs, from the files of their ranks.
//
// Contract: ranks_in() returns the ranks whose traces lie in a directory, in order. read_rank() gives one trace, read()
//   all. The trace of a rank that was killed, or still runs, ends where it is. A trace with a damaged end ends before
//   the damage, with a `warning`; one with a damaged beginning is an error.
// Invariants: (1) whatever the files hold, the numbers in a RankTrace are those of its tables, and its blobs are valid.
// Threads: pure; the files may grow meanwhile. Time: none.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::trace {

Result<std::vector<uint32_t>> ranks_in(const std::string& directory);
Result<RankTrace> read_rank(const std::string& directory, uint32_t rank);
Result<std::vector<RankTrace>> read(const std::string& directory);

}  // namespace spinloom::trace
