// HandlerLog - records the handlers of one simulated NIC: their calls, how each ended, their debug lines.
//
// Contract: a node calls the log that it was given; a node without a log does nothing.
// Invariants: (1) the first limits::handler_log_lines_max debug lines are kept, and as many ends that have a reason;
//   later ones are only counted; (2) recording changes no modelled number.
// Threads: one owner. Time: virtual.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/limits.hpp"
#include "base/units.hpp"
#include "nic/portals/nic.hpp"

namespace spinloom::simulated {

class HandlerLog {
 public:
  struct Line {
    Time time;
    uint32_t hpu = 0;
    nic::HandlerKind kind = nic::HandlerKind::payload;
    std::string text;
    uint32_t value = 0;  // the value of a debug line
  };
  // Kind, end, and return code, which is 0 if the handler did not return.
  using Ending = std::tuple<nic::HandlerKind, nic::HandlerEnd, uint32_t>;

  void record_call(uint32_t number) { ++calls_[number]; }
  void record_debug(Line line) { keep(debug_, debug_dropped_, std::move(line)); }
  // `line.text` is the reason why a handler did not return; it is empty if the handler returned.
  void record_end(nic::HandlerEnd end, uint32_t code, Line line) {
    const bool returned = end == nic::HandlerEnd::returned;
    ++endings_[{line.kind, end, returned ? code : 0}];
    if (!returned) keep(troubles_, troubles_dropped_, std::move(line));
  }

  [[nodiscard]] const std::map<uint32_t, uint64_t>& calls() const { return calls_; }
  [[nodiscard]] const std::map<Ending, uint64_t>& endings() const { return endings_; }
  [[nodiscard]] const std::vector<Line>& debug() const { return debug_; }
  [[nodiscard]] uint64_t debug_dropped() const { return debug_dropped_; }
  [[nodiscard]] const std::vector<Line>& troubles() const { return troubles_; }
  [[nodiscard]] uint64_t troubles_dropped() const { return troubles_dropped_; }

 private:
  static void keep(std::vector<Line>& lines, uint64_t& dropped, Line line) {
    if (lines.size() < limits::handler_log_lines_max) {
      lines.push_back(std::move(line));
    } else {
      ++dropped;
    }
  }

  std::map<uint32_t, uint64_t> calls_;
  std::map<Ending, uint64_t> endings_;
  std::vector<Line> debug_;
  std::vector<Line> troubles_;
  uint64_t debug_dropped_ = 0;
  uint64_t troubles_dropped_ = 0;
};

}  // namespace spinloom::simulated
