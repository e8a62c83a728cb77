// TeamCall - a collective operation as all members of a team call it, and a plain reference for its results.
//
// Contract: random() draws the operation, its algorithm, root, sizes and places. call_of() returns the call of one
//   member, with its memory. results_of() computes the memory of all members at the end from that at the beginning.
// Invariants: (1) the reference knows no algorithm: an operation is a list of Moves from what members had at the
//   beginning, or a reduction of it; (2) operators commute, and their results do not depend on an order.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "portals/collective/call.hpp"

namespace spinloom::torture {

using Bytes = std::vector<uint8_t>;

struct TeamCall {
  struct Limits {
    uint64_t bytes = 0;  // a member's data, roughly
    bool may_die = false;  // a member may die, so the broadcast that survives this is drawn often
  };
  // The memory of all members.
  struct Memory {
    std::vector<Bytes> send;
    std::vector<Bytes> receive;
  };
  struct Member {
    bool in_place = false;
    uint64_t send_bytes = 0;
    uint64_t receive_bytes = 0;
    std::vector<collective::Call::Block> sends = {};
    std::vector<collective::Call::Block> receives = {};
    std::vector<int32_t> sources = {};
    std::vector<int32_t> destinations = {};
  };
  struct Move {
    uint32_t from = 0;  // members
    uint32_t to = 0;
    uint64_t from_offset = 0;
    uint64_t to_offset = 0;
    uint64_t bytes = 0;
  };

  [[nodiscard]] static TeamCall random(uint32_t size, const Limits& limits, Random& random);
  [[nodiscard]] collective::Call call_of(uint32_t member, uint8_t* send, uint8_t* receive) const;
  [[nodiscard]] Memory random_memory(Random& random) const;
  // Returns the contents of each member's `receive` at the end.
  [[nodiscard]] std::vector<Bytes> results_of(const Memory& memory) const;
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(members.size()); }
  // True if the call is the broadcast that survives the death of members.
  [[nodiscard]] bool outlives_members() const;
  [[nodiscard]] std::string name() const;

  collective::Call call;  // the arguments that are alike at all members
  std::vector<Member> members;
  std::vector<Move> moves;
};

}  // namespace spinloom::torture
