#include "mpi/entry/lineage.hpp"

#include <bit>

namespace spinloom::mpi {
namespace {

// A bijection in which each bit of the word changes half of the bits (the finalizer of splitmix64, Steele and others).
uint64_t mixed(uint64_t word) {
  word = (word ^ word >> 30) * 0xbf58'476d'1ce4'e5b9;
  word = (word ^ word >> 27) * 0x94d0'49bb'1331'11eb;
  return word ^ word >> 31;
}

}  // namespace

Key Key::with(uint64_t word) const {
  constexpr uint64_t golden = 0x9e37'79b9'7f4a'7c15;  // 2^64 divided by the golden ratio
  constexpr uint64_t root = 0xb504'f333'f9de'6485;  // the square root of 2, times 2^63, made odd
  constexpr int turn = 23;
  const uint64_t new_low = mixed(low ^ (word + 1) * golden);
  return {new_low == 0 ? 1 : new_low, mixed(std::rotl(high, turn) + (word + 1) * root)};
}

Key Key::of_members(std::span<const int> in_world) const {
  Key key = with(in_world.size());
  for (const int rank : in_world) key = key.with(static_cast<uint64_t>(rank));
  return key;
}

Key Lineage::next_child(std::span<const int> group, int tag) {
  std::vector<int> tag_and_members{tag};
  tag_and_members.insert(tag_and_members.end(), group.begin(), group.end());
  const uint64_t number = ++group_calls_[tag_and_members];
  return key_.with(group_children).of_members(tag_and_members).with(number);
}

}  // namespace spinloom::mpi
