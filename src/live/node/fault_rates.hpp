// Fault rates - reads texts such as "drop=0.01,seed=7", which say how tests disturb a transport.
//
// Contract: read_rates() sets the rates that the text names, each 0 to 1, and the seed. Any other word is an Error that
//   lists the names; what stands before that word has been set.
// Threads: pure. Time: none.
#pragma once

#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace spinloom::live {

inline Status read_rates(const std::string& given, const std::vector<std::pair<const char*, double*>>& rates,
                         uint64_t& seed) {
  std::istringstream words(given);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    const char* const end = value.data() + value.size();
    double rate = -1;
    const bool number = std::from_chars(value.data(), end, rate).ptr == end && !value.empty() && rate >= 0;
    bool known = name == "seed" && number;
    if (known) seed = static_cast<uint64_t>(rate);
    std::string names;
    for (const auto& [which, place] : rates) {
      names += text(names.empty() ? "" : ", ", which);
      if (name != which || !number || rate > 1) continue;
      *place = rate;
      known = true;
    }
    if (!known) return fail(Code::invalid, "'", word, "' is no fault: ", names, " = 0 to 1, seed = a number");
  }
  return {};
}

}  // namespace spinloom::live
