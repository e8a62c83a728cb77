// ReceiveCache - prepared receives by datatype, sharing the NIC's memory by priority.
//
// Contract: acquire() returns a receive for (type, count): one prepared earlier, or a new one. To make room for a new
//   one, receives that nobody holds give their NIC memory back: the lowest priority first, the least recently used
//   among equals, and never one of higher priority than the type's. If that is not enough, or the type's attributes
//   say so, the receive falls back to unpacking on the host. give_back() ends a use; the receive stays prepared.
//   Source: SC'19 datatypes paper, section 3.2.6 (step 2, and the attributes at its end).
// Invariants: (1) a receive in use is never evicted; (2) two types share a receive only if strategy and epsilon are the
//   same and their blobs are equal byte by byte; (3) a type that cannot fit evicts no other; (4) a receive that keeps
//   something of one message, such as checkpoints that move, serves one message at a time: the second one gets a
//   receive of its own.
// Threads: the owner of the Interface. Time: none; installing costs what the calls cost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "portals/strategies/receive.hpp"

namespace spinloom::strategies {

// The attributes that a user may give a type.
struct TypeAttributes {
  bool offload = true;
  int32_t priority = 0;  // types of higher priority are evicted later
  // For checkpoint strategies: replaces the profile's epsilon.
  struct Epsilon {
    int64_t numerator = 1;
    int64_t denominator = 5;
  };
  std::optional<Epsilon> epsilon;
};

class ReceiveCache {
 public:
  struct Nic {
    portals::Interface& interface;
    nic::PortalIndex portal;
    nic::QueueId queue;
    std::vector<HandlerImage> images;
    NicFacts facts;
    HandlerCost cost;
    std::string family = {};  // the `family` of Receive::prepare()
  };
  struct Statistics {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t evictions = 0;
    uint64_t fallbacks = 0;  // receives that unpack on the host instead
  };
  struct Lease {
    Receive* receive = nullptr;
    Strategy strategy = Strategy::host_mpitypes;  // the strategy that the receive uses
    std::string fallback;  // the reason why that is not the strategy asked for; empty if it is
  };

  explicit ReceiveCache(Nic nic) : nic_(std::move(nic)) {}

  [[nodiscard]] Result<Lease> acquire(const layout::Type& type, int64_t count, Strategy wanted,
                                      const TypeAttributes& attributes = {});
  void give_back(const Lease& lease);
  // Releases the NIC memory of this type's receives that are not in use.
  [[nodiscard]] Status forget(const layout::Type& type, int64_t count, Strategy wanted,
                              const TypeAttributes& attributes = {});
  // Releases all prepared receives that are not in use.
  [[nodiscard]] Status clear();
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  // NIC memory of the prepared receives, in use or not.
  [[nodiscard]] uint64_t nic_memory_bytes() const;

 private:
  struct CachedReceive {
    std::unique_ptr<Receive> receive;
    Strategy strategy = Strategy::host_mpitypes;
    int32_t priority = 0;
    uint64_t users = 0;
    uint64_t last_use = 0;  // the number of acquire() calls up to the last one that returned it
  };
  using Table = std::unordered_multimap<std::string, CachedReceive>;

  [[nodiscard]] NicFacts facts_for(const TypeAttributes& attributes) const;
  // Returns the least recently used receive with this key that a new message may use; null if there is none.
  [[nodiscard]] CachedReceive* find_usable(const std::string& key);
  [[nodiscard]] Result<std::unique_ptr<Receive>> prepare(Strategy strategy, const Message& message,
                                                         const NicFacts& facts, int32_t priority);
  [[nodiscard]] static bool is_evictable(const CachedReceive& cached, int32_t priority) {
    return cached.users == 0 && cached.priority <= priority;
  }
  [[nodiscard]] Status release_unused(Table::iterator cached, Table::iterator last);
  // NIC memory that a receive of this priority cannot get.
  [[nodiscard]] uint64_t unevictable_bytes(int32_t priority) const;
  // Evicts one receive for this priority; false when there is none to evict.
  [[nodiscard]] Result<bool> evict_one(int32_t priority);

  Nic nic_;
  Table receives_;
  Statistics statistics_;
  uint64_t acquires_ = 0;  // the number of acquire() calls so far
};

}  // namespace spinloom::strategies
