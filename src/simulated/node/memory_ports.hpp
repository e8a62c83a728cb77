// MemoryPorts - arbitrates between cores of a clustered NIC that ask for the same memory port or bank.
//
// Contract: grant() is called for each contended access in the order of virtual time (ties by HPU); it returns
//   the cycle in which the access may issue. An access to the cluster's own memory (L1) asks for its bank; one to L2
//   asks for the cluster's port, then for the bank. A port takes one access a cycle; a bank too, except that an atomic
//   holds an L1 bank until it is done. The core's timing model (timing_pulp.hpp) has the cost of an access once it is
//   granted.
//     grant = max(cycle, port free, bank free);   port free = bank free = grant + 1
//   Words are interleaved: bank of byte b = (b / width) mod banks.
// Invariants: (1) a grant is never before the request; (2) accesses to one bank are granted in the order asked.
// Threads: one owner. Time: HPU cycles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nic/hpu/memory.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::simulated {

class MemoryPorts {
 public:
  explicit MemoryPorts(const Profile& profile) : profile_(profile), pulp_(profile.pulp) {
    const auto clusters = static_cast<size_t>(pulp_.clusters);
    l1_free_.resize(clusters * static_cast<size_t>(pulp_.l1_banks));
    port_free_.resize(clusters);
    l2_free_.resize(static_cast<size_t>(pulp_.l2_banks));
  }

  // `byte` is the offset from the start of the memory that answers.
  uint64_t grant(uint32_t hpu, hpu::LatencyClass memory, uint64_t byte, bool is_atomic, uint64_t cycle) {
    const uint32_t cluster = profile_.cluster_of(hpu);
    if (memory == hpu::LatencyClass::scratchpad) {
      const size_t bank = cluster * static_cast<size_t>(pulp_.l1_banks) +
                          byte / static_cast<uint64_t>(pulp_.l1_bank_bytes) % static_cast<uint64_t>(pulp_.l1_banks);
      const uint64_t granted = std::max(cycle, l1_free_[bank]);
      l1_free_[bank] = granted + (is_atomic ? static_cast<uint64_t>(pulp_.atomic_l1) : 1);
      return granted;
    }
    uint64_t& bank =
        l2_free_[byte / static_cast<uint64_t>(pulp_.l2_bank_bytes) % static_cast<uint64_t>(pulp_.l2_banks)];
    const uint64_t granted = std::max({cycle, port_free_[cluster], bank});
    port_free_[cluster] = granted + 1;
    bank = granted + 1;
    return granted;
  }

 private:
  const Profile& profile_;
  const decltype(Profile::pulp)& pulp_;
  std::vector<uint64_t> l1_free_;    // cluster * banks + bank
  std::vector<uint64_t> port_free_;  // one for each cluster
  std::vector<uint64_t> l2_free_;    // one for each bank
};

}  // namespace spinloom::simulated
