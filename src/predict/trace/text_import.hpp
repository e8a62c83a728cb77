// Import - the text traces of a PMPI wrapper (liballprof, of LogGOPSim's tool chain) as a recorded program:
// docs/formats/text-trace.md.
//
// Contract: import_text() reads one file for each rank, in their order, and writes rank-N.trace of each into
//   `directory`. A wrong line is an error with its file and number; but a last line that is cut off is counted. What is
//   not imported is counted by name, with the reason.
// Invariants: (1) an error leaves no trace that this call has begun, and no trace that was there is touched; (2) the
//   same files make the same traces.
// Threads: pure. Time: the writing hosts', in ns, as their clocks were; `begun_unix_ns` is on rank 0's clock where the
//   files say how far theirs are off.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace spinloom::trace {

enum class LeftOut : uint8_t { local, not_known, no_members, no_counts };

struct TextImport {
  uint64_t calls = 0;  // imported calls of all ranks
  std::map<std::pair<LeftOut, std::string>, uint64_t> left_out;  // the key has the name of the call
  uint64_t any_source = 0;  // receives whose sender no line tells
  uint64_t guessed_comms = 0;  // handles of ranks that fit several communicators: lower ones are older ones
  uint64_t never_ended = 0;  // requests that no completing call names after they began
  uint64_t times_back = 0;  // calls that end before the call of the line before
  uint64_t cut_lines = 0;  // lines that are cut at the ends of files
};

[[nodiscard]] Result<TextImport> import_text(std::span<const std::string> files, const std::string& directory);

}  // namespace spinloom::trace
