// LiveTestbed - several ranks of the live driver in one process, which talk over shared memory, UDP or
// a fabric, as processes do, directly or through gateways.
//
// Contract: the testbed of scenarios (portals/testbed/testbed.hpp). Each rank has its own segment, node, transport,
//   helper and watcher threads, and a pool of HPU threads if there are handlers.
// Invariants: (1) nobody calls a node without its lock; (2) wait() and settle() give up with an Error after
//   patience().
// Threads: the scenario's one, and those of the ranks. Time: real.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/testing/patience.hpp"
#include "live/bridge/bridge_tap.hpp"
#include "live/bridge/bridge_transport.hpp"
#include "live/fabric/fabric_transport.hpp"
#include "live/fabric/testing/local_fabric.hpp"
#include "live/node/node.hpp"
#include "live/node/progress.hpp"
#include "live/shm/shm_transport.hpp"
#include "live/udp/udp_transport.hpp"
#include "portals/testbed/loopback_testbed.hpp"
#include "portals/testbed/testbed.hpp"

namespace spinloom::live {

// The cards and segments of ranks that all live in this process.
struct LocalJob {
  static Result<LocalJob> create(uint32_t ranks);
  std::vector<BusinessCard> cards;
  std::vector<Segment> segments;
};

// Ranks that reach each other through gateways only. With several, these are a chain, and the ranks are dealt to them
// in turns.
struct Bridging {
  uint32_t gateways = 0;  // 0: all ranks reach each other
  BridgeOptions options;
};

class LiveTestbed final : public testbed::Testbed {
 public:
  static Time patience() { return patient(Time{120'000'000'000'000}); }  // 120 s: the machine may be busy

  enum class Over : uint8_t {
    shared_memory,
    udp,
    lossy_udp,
    fabric,            // a fabric of this process: local_fabric.hpp
    fabric_in_pieces,  // one that cannot read the sender's memory
    fabric_disturbed   // one that refuses and delays messages
  };

  // This says how soon ranks that talk over UDP or a fabric take a silent rank for dead. Busy ranks may be silent, too.
  enum class Patience : uint8_t { usual, short_for_deaths };

  // `handlers` may be null: then scenarios with handlers do not run.
  static Result<std::unique_ptr<LiveTestbed>> create(uint32_t ranks, const nic::NicLimits& limits,
                                                     const ShmOptions& options, Time spin,
                                                     std::shared_ptr<testbed::ScenarioHandlers> handlers,
                                                     Over over = Over::shared_memory, const Bridging& bridging = {},
                                                     Patience patience = Patience::usual);
  ~LiveTestbed() override;

  [[nodiscard]] uint32_t ranks() const override { return ranks_; }
  [[nodiscard]] portals::Interface& rank(uint32_t rank) override;
  [[nodiscard]] const nic::Nic& nic(uint32_t rank) const override;
  [[nodiscard]] Result<testbed::TestHandlers> handlers(std::string_view name) override;
  [[nodiscard]] Status settle() override;
  [[nodiscard]] Status kill(uint32_t rank) override;
  // The number of packets that the ranks have refused.
  [[nodiscard]] uint64_t refused();
  // The most packets and bytes of one peer that ever waited for room at this rank.
  [[nodiscard]] Backlog::Amount backlog_peak(uint32_t rank);
  // This rank says goodbye to the others.
  void leave(uint32_t rank);
  // The bridge of a rank; gateways come after the ranks. The caller holds no lock, and reads counts only.
  [[nodiscard]] const BridgeTransport& bridge(uint32_t rank) const;
  // Cuts all links of a gateway: for its neighbours it has died.
  void kill_gateway(uint32_t gateway);

 private:
  struct Member;
  LiveTestbed() = default;

  // Makes the transport by which this rank reaches the others.
  [[nodiscard]] Result<Transport*> make_way(Member& member, uint32_t rank, Over over,
                                            std::unique_ptr<DatagramPort> port);

  // Links a member to its neighbours by `way`.
  void make_bridge(Member& member, uint32_t rank, Transport& way, const Bridging& bridging);

  uint32_t ranks_ = 0;  // number of ranks, without gateways
  Patience patience_ = Patience::usual;
  LocalJob job_;
  std::unique_ptr<LocalFabric> fabric_;
  std::shared_ptr<testbed::ScenarioHandlers> handlers_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace spinloom::live
