// Setup - the simulated NIC of checked runs, and the parts that they share.
//
// Contract: a Setup describes the machine, not the messages. The functions turn it into arguments for the floors
//   below: loaded images, facts about the NIC, options of a world.
// Invariants: (1) LoadedImages::handlers[i].index is i, the place of its image.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/measure/destination.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"
#include "portals/strategies/receive.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::app {

// All messages of a cell go to one entry: these are its match bits and the slots of its queue.
inline constexpr uint64_t cell_match_bits = 0x5350494e;
inline constexpr uint32_t cell_queue_slots = 64;

struct Setup {
  simulated::Profile profile;
  std::map<std::string, std::vector<uint8_t>> images;  // ELF files by name
  uint32_t hpus = 32;
  uint32_t payload_bytes = 2048;
  simulated::Ordering ordering;  // carries the seed
  Inject inject = Inject::none;
  uint32_t slice_cycles = limits::slice_cycles;
};

struct LoadedImages {
  std::vector<hpu::Image> images;
  std::vector<strategies::HandlerImage> handlers;
};

[[nodiscard]] Result<LoadedImages> load_images(const std::map<std::string, std::vector<uint8_t>>& files);
[[nodiscard]] strategies::NicFacts facts_of(const Setup& setup);
[[nodiscard]] simulated::WorldOptions world_options(const Setup& setup);

// Adds the event to the bytes of the result hash, little-endian.
void log_event(std::vector<uint8_t>& log, int64_t time_ps, const nic::Event& event);
// Adds to a fault on the NIC why the handler ended, if the model knows.
[[nodiscard]] Error explain(const Error& error, const simulated::Node& node);

}  // namespace spinloom::app
