// Capture - captures the output of ranks to one stream of this process, and prints whole lines for each rank.
//
// Contract: from begin() on, the stream's file descriptor leads into memory. collect(rank) prints the lines that this
//   rank has finished since the last call, each after the rank's name if begin() had `prefix`. finish(rank) also prints
//   the rank's last, unfinished line.
// Invariants: (1) lines of two ranks never mix; (2) a rank's bytes keep their order; (3) only one rank prints between
//   two calls.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::job {

class Capture {
 public:
  Capture(FILE* stream, int descriptor) : stream_(stream), descriptor_(descriptor) {}

  Status begin(uint32_t ranks, bool prefix);
  void collect(uint32_t rank);
  void finish(uint32_t rank);
  // Prints the rank's output so far, for a signal handler: reads the stream's buffer without its lock, which may be
  // held then.
  void rescue(uint32_t rank);
  // Writes bytes that belong to no rank to the stream's real descriptor. A signal handler may call it.
  void write_unprefixed(const char* bytes, size_t length) const;
  // The errno of the first write that failed; 0 if all lines were written.
  [[nodiscard]] int error() const { return error_; }

 private:
  // Takes the captured bytes, which are the rank's, and prints the lines that they finish.
  void take_captured(uint32_t rank);
  void print(uint32_t rank, const char* bytes, size_t length);
  // Keeps the first errno that is not 0.
  void note_error(int error);

  FILE* stream_;
  int descriptor_;
  int real_descriptor_ = -1;
  int error_ = 0;
  bool prefix_ = false;
  std::vector<std::string> unfinished_lines_;  // unfinished lines, by rank
};

}  // namespace spinloom::job
