// Grammar - small programs: all of a kind by number, and random ones.
//
// Contract: a grammar has operations for each rank and how many of them follow each other there. program_at() gives the
//   program of a number; each sequence of the operations has one. placed() gives operations memory of their own, and an
//   unlink the newest append before it; a sequence in which that is missing has no program. A call that may wait for
//   ever stands in grammars only.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "portals/model/program.hpp"

namespace spinloom::model {

struct RankGrammar {
  Setup setup;
  std::vector<Operation> operations;
  uint16_t length = 0;
};
struct Grammar {
  const char* name = "";
  std::vector<RankGrammar> ranks;
};

// The grammars whose programs are all explored.
[[nodiscard]] std::vector<Grammar> grammars();

[[nodiscard]] uint64_t programs_of(const Grammar& grammar);
[[nodiscard]] std::optional<Program> program_at(const Grammar& grammar, uint64_t number);

[[nodiscard]] std::optional<RankProgram> placed(RankProgram rank);

// A program whose ranks make `calls` calls each, of all kinds and with all options.
[[nodiscard]] Program random_program(Random& random, uint16_t ranks, uint16_t calls);
// Draws a long program: ranks make `calls` calls, wait until all is quiet, and go on.
[[nodiscard]] Program random_history(Random& random, uint16_t ranks, uint16_t calls, uint16_t windows);

}  // namespace spinloom::model
