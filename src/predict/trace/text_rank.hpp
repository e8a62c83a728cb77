// TextRank - one rank's calls of a text trace, and the trace that is written from them. For text_import.cpp only.
//
// Contract: a TextRank takes the lines of its file in their order, then writes the trace.
// Threads: one owner. Time: the writing host's, in ns.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "predict/trace/text_comms.hpp"
#include "predict/trace/text_import.hpp"
#include "predict/trace/text_requests.hpp"

namespace spinloom::trace {

// Facts that the lines of one rank give together.
struct FileFacts {
  bool is_mpich = false;
  bool has_int_handles = false;  // some request lies where a pointer would not
  uint64_t first_ns = UINT64_MAX;
  double clock_ahead_us = 0;  // the time by which rank 0's clock is ahead of this rank's
  std::string host;
  std::vector<CommMark> marks;
};

// Returns how a call uses, makes or frees a communicator. has_mark() is false for a call that does
// none of these.
[[nodiscard]] CommMark mark_of(const TextCall& call);
[[nodiscard]] bool has_mark(const TextCall& call);

class TextRank {
 public:
  TextRank(TextComms& comms, const FileFacts& facts, uint32_t rank, TextImport& totals)
      : comms_(comms),
        binder_(comms, rank),
        facts_(facts),
        rank_(rank),
        totals_(totals),
        requests_(facts.has_int_handles ? sizeof(int) : sizeof(void*)),
        last_ns_(facts.first_ns) {}

  void remark(std::string_view) {}
  Status cut_line();
  Status on_unknown_call(std::string_view name);
  Status call(const TextCall& call);
  Status write(const std::string& directory, uint32_t ranks);

 private:
  struct RankCall {
    Signature signature;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
  };
  void count(LeftOut why, std::string_view name) { ++totals_.left_out[{why, std::string(name)}]; }
  Status leave_out(LeftOut why, const TextCall& call);
  [[nodiscard]] uint32_t trace_number_of(uint32_t comm, const TextCall& call);
  void find_numbers();
  [[nodiscard]] std::vector<CommEntry> entries();
  [[nodiscard]] uint32_t type_of(const TextType& type);
  void note_requests(const TextCall& call);
  void add(const TextCall& call, Signature signature);

  TextComms& comms_;
  CommBinder binder_;
  const FileFacts& facts_;
  uint32_t rank_;
  TextImport& totals_;
  TextRequests requests_;
  uint64_t last_ns_;
  std::vector<uint32_t> comm_numbers_;  // the number in the trace of each communicator of TextComms
  std::map<TextType, uint32_t> type_numbers_;
  std::vector<TypeEntry> types_;
  Status trouble_;
  std::vector<RankCall> calls_;
};

}  // namespace spinloom::trace
