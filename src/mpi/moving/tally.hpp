// Tally - counts a rank's messages for its report, by type, count, receiver, way, reason and collective call.
//
// Contract: a TypeTally belongs to all datatypes with the same text; the Forms of such types point to it, so that a
//   message is counted without a search for its type. count() adds a message; withdraw() notes that an offered one was
//   packed after all. as_json() is the value of "types" in the rank's line (docs/formats/mpi-report.md).
// Invariants: (1) a program that makes new types all the time needs no more memory: messages beyond the limits are
//   counted under coarser kinds, never lost; (2) a TypeTally lives as long as its Tally.
// Threads: the caller's lock. Time: none.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "memory/layout/type.hpp"
#include "mpi/moving/way.hpp"

namespace spinloom::mpi {

class TypeTally {
 public:
  static constexpr int64_t various = -1;  // stands for a count or receiver if there are too many different ones
  struct Kind {
    int64_t count = 0;
    int64_t receiver = 0;  // rank in MPI_COMM_WORLD; -1: of another world, or various
    Way way = Way::pass;
    const char* why = "";  // compared by address
    const char* call = "";  // the collective call that the message belongs to; compared by address
    [[nodiscard]] bool operator==(const Kind&) const = default;
  };

  TypeTally(const char* kind_name, std::string text, bool is_whole)
      : kind_name_(kind_name), text_(std::move(text)), is_whole_(is_whole) {}
  void describe(const Form& form);
  void count(const Kind& kind, int64_t bytes) {
    Cell& cell = last_ != nullptr && last_->kind == kind ? *last_ : find_or_add(kind);
    ++cell.messages;
    cell.bytes += static_cast<uint64_t>(bytes);
  }
  void withdraw(int64_t count, int64_t receiver);
  [[nodiscard]] std::string as_json() const;
  [[nodiscard]] bool is_empty() const { return cells_.empty(); }

 private:
  struct Cell {
    Kind kind;
    uint64_t messages = 0, bytes = 0, withdrawn = 0;
  };
  struct Hash {
    size_t operator()(const Kind& kind) const;
  };
  Cell& find_or_add(Kind kind);

  const char* kind_name_;  // "derived", "contiguous", "unknown" or "other"
  std::string text_;
  bool is_whole_;  // `text_` is not cut
  int64_t size_ = 0, extent_ = 0;
  double spread_ = 1, block_bytes_ = 0;
  std::deque<Cell> cells_;
  std::unordered_map<Kind, Cell*, Hash> by_kind_;
  Cell* last_ = nullptr;
};

class Tally {
 public:
  [[nodiscard]] TypeTally* contiguous() { return &contiguous_; }
  [[nodiscard]] TypeTally* unknown() { return &unknown_; }
  [[nodiscard]] TypeTally* tally_of(const layout::Type& type, const Form& form);
  [[nodiscard]] std::string as_json() const;
  // Called after each message. True if the report so far should be kept, in case this rank is killed: after 1, 2,
  // 4, ... 64 messages, then at most once a second.
  [[nodiscard]] bool is_due() { return ++messages_ >= next_check_ && is_report_time(); }

 private:
  [[nodiscard]] bool is_report_time();

  uint64_t messages_ = 0;
  uint64_t next_check_ = 1;
  int64_t last_report_ns_ = 0;
  TypeTally contiguous_{"contiguous", "", false};
  TypeTally unknown_{"unknown", "", false};
  TypeTally other_{"other", "", false};
  std::deque<TypeTally> derived_;
  std::unordered_map<std::string, TypeTally*> by_text_;
  size_t text_bytes_ = 0;
};

}  // namespace spinloom::mpi
