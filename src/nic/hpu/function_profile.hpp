// FunctionProfile - cycles of handlers by the function of the image in which they were spent.
//
// Contract: made for one image; a core that was started with it reports every control transfer. Cycles belong to the
//   function whose instructions retired in them; what a function calls is not counted as its own. A function begins
//   at its symbol and ends at the next one; code before the first symbol counts as "(no symbol)".
// Invariants: 1. the sum of cycles() is the cycles of all handlers that returned or faulted with this
//   profile (a driver that abandons one may do so before what is under way retires); 2. of two symbols
//   at one address the one that sorts first names the function.
// Threads: one owner; cores of one simulation share it. Time: HPU cycles.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nic/hpu/elf.hpp"

namespace spinloom::hpu {

class FunctionProfile {
 public:
  explicit FunctionProfile(const Image& image) : function_of_(image.slot_count(), 0) {
    std::map<uint32_t, std::string> starts;  // first slot -> name
    for (const auto& [name, address] : image.symbols()) starts.try_emplace((address - image.base()) / 2, name);
    names_.emplace_back("(no symbol)");
    auto next = starts.begin();
    for (uint32_t slot = 0; slot < function_of_.size(); ++slot) {
      for (; next != starts.end() && next->first <= slot; ++next) names_.push_back(next->second);
      function_of_[slot] = static_cast<uint32_t>(names_.size() - 1);
    }
    cycles_.resize(names_.size());
  }

  // The function that one core is in, and the cycle up to which its time is accounted for.
  struct Cursor {
    uint32_t function = 0;
    uint64_t since = 0;
  };
  void begin(Cursor& cursor, uint32_t slot, uint64_t cycle) const { cursor = {function_at(slot), cycle}; }
  void enter(Cursor& cursor, uint32_t slot, uint64_t cycle) {
    const uint32_t function = function_at(slot);
    if (function == cursor.function) return;
    end(cursor, cycle);
    cursor.function = function;
  }
  void end(Cursor& cursor, uint64_t cycle) {
    if (cycle <= cursor.since) return;
    cycles_[cursor.function] += cycle - cursor.since;
    cursor.since = cycle;
  }

  // Cycles by name; functions that never ran are left out.
  [[nodiscard]] std::map<std::string, uint64_t> cycles() const {
    std::map<std::string, uint64_t> by_name;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (cycles_[i] > 0) by_name[names_[i]] += cycles_[i];
    }
    return by_name;
  }

 private:
  [[nodiscard]] uint32_t function_at(uint32_t slot) const {
    return slot < function_of_.size() ? function_of_[slot] : 0;
  }

  std::vector<std::string> names_;
  std::vector<uint64_t> cycles_;
  std::vector<uint32_t> function_of_;
};

}  // namespace spinloom::hpu
