#include "live/process/crowding.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace spinloom::process {
namespace {

constexpr size_t words_max = 1024;  // 65,536 processors

size_t count(const Processors& processors) {
  size_t sum = 0;
  for (const uint64_t word : processors) sum += static_cast<size_t>(std::popcount(word));
  return sum;
}

bool is_inside(const Processors& some, const Processors& all) {
  for (size_t word = 0; word < some.size(); ++word) {
    if ((some[word] & ~(word < all.size() ? all[word] : 0)) != 0) return false;
  }
  return true;
}

}  // namespace

Processors processors_of(pid_t process) {
  for (size_t words = 16; words <= words_max; words *= 2) {
    Processors processors(words);
    auto* const set = reinterpret_cast<cpu_set_t*>(processors.data());
    if (sched_getaffinity(process, words * sizeof(uint64_t), set) == 0) return processors;
    if (errno != EINVAL) break;  // otherwise the system has more processors than fit
  }
  return {};
}

bool are_crowded(const std::vector<Processors>& ranks, size_t own) {
  const Processors& here = ranks[own];
  if (here.empty()) return true;
  Processors all;
  size_t confined = 0;
  for (const Processors& given : ranks) {
    const Processors& rank = given.empty() ? here : given;
    if (is_inside(rank, here)) ++confined;
    all.resize(std::max(all.size(), rank.size()));
    for (size_t word = 0; word < rank.size(); ++word) all[word] |= rank[word];
  }
  return ranks.size() > count(all) || confined > count(here);
}

}  // namespace spinloom::process
