// World - the ranks of a run, the link between them, and the objects that all exchanges share.
//
// Contract: make() builds the world from a configuration and a seed; the same two give the same run. A host call that
//   must wait for an answer runs steps of the world meanwhile. step() does one step.
// Threads: one owner. Time: that of the loopback driver.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "portals/interface/interface.hpp"
#include "portals/testbed/loopback.hpp"
#include "torture/config.hpp"
#include "torture/handlers.hpp"
#include "torture/lossy_links.hpp"
#include "torture/region.hpp"

namespace spinloom::torture {

struct Host {
  std::unique_ptr<portals::Interface> interface;
  nic::QueueId arrivals;      // events of this rank's entries
  nic::QueueId departures;    // events of this rank's own operations
  nic::PortalIndex portal;    // messages without an entry are dropped
  nic::PortalIndex overflow;  // messages without an entry wait in an overflow entry
  nic::PortalIndex flow;      // an entry with flow control
  nic::CounterId sent;        // counts this rank's own operations
  nic::CounterId landed;      // counts messages at its entries
  nic::CounterValue sent_expected;
  nic::CounterValue landed_expected;
  std::array<uint64_t, 3> refused_expected{};  // one for each nic::Refusal; dropped messages are not predicted
  uint32_t crowds = 0;        // number of portal table entries in use from World::crowd_portals on
  Region waiting_room;        // the memory of the overflow entry
  uint64_t waiting_room_used = 0;
  nic::EntryId waiting_room_entry;
  bool dead = false;
};

class World {
 public:
  // The number of the portal table whose entries keep few unexpected headers, and the first of these entries.
  static constexpr uint32_t crowd_table = 1;
  static constexpr uint32_t crowd_portals = limits::portal_table_max / limits::portal_tables * crowd_table;
  static constexpr uint32_t crowd_headers = 5;
  // Engines of collective calls take portal table entries from this one down.
  static constexpr uint32_t engine_portal = crowd_portals - 1;
  static constexpr uint32_t engine_portals = 48;

  static Result<std::unique_ptr<World>> make(const Config& config, uint64_t seed, bool trace);

  // Returns the Portals calls of a rank's program.
  [[nodiscard]] portals::Interface& interface(uint32_t rank) { return *hosts[rank].interface; }
  // Does one step; false if nothing can happen any more.
  bool step() { return loopback->step(); }
  void kill(uint32_t rank);
  void note(const std::string& line) const;
  // Returns an Error if anything is still under way or kept at a living rank or on a link.
  [[nodiscard]] Status check_quiet();
  // Throws InternalError if a living rank's NIC, its stage of the links or its host breaks an invariant.
  void check_invariants(uint32_t rank) const;

  Config config;
  uint64_t seed = 0;
  bool trace = false;
  Random random;
  FaultCounts faults{};
  std::unique_ptr<Handlers> handlers;
  std::unique_ptr<LossyLinks> links;
  std::unique_ptr<testbed::Loopback> loopback;
  std::vector<Host> hosts;
  uint64_t messages = 0;
  uint32_t engines = 0;  // the number of times that the engines of all ranks were opened
  bool engine_overrun = false;  // a schedule failed for lack of headers: gets of others may find no exposed memory
  bool stream_waits = false;  // a streaming put waits until its target has read memory

 private:
  World(const Config& config_, uint64_t seed_, bool trace_)
      : config(config_), seed(seed_), trace(trace_), random(seed_, "world") {}
  [[nodiscard]] Status open(uint32_t rank);
};

}  // namespace spinloom::torture
