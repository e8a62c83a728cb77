// Setup - the simulated NIC that checked runs stand on, and what they share to use it.
//
// Contract: a Setup says everything about the machine and nothing about messages. The functions turn it into what the
//   floors below take: loaded images, facts about the NIC.
// Invariants: (1) LoadedImages::handlers[i].index is i, the place of its image.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/destination.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"
#include "offload/receive.hpp"
#include "sim/world.hpp"

namespace spinloom::app {

struct Setup {
  sim::Profile profile;
  std::map<std::string, std::vector<uint8_t>> images;  // ELF files by name
  uint32_t hpus = 32;
  uint32_t payload_bytes = 2048;
  sim::Ordering ordering;  // carries the seed
  Inject inject = Inject::none;
  uint32_t slice_cycles = limits::slice_cycles;
};

struct LoadedImages {
  std::vector<hpu::Image> images;
  std::vector<offload::HandlerImage> handlers;
};

[[nodiscard]] Result<LoadedImages> load_images(const std::map<std::string, std::vector<uint8_t>>& files);
[[nodiscard]] offload::NicFacts facts_of(const Setup& setup);
[[nodiscard]] sim::WorldOptions world_options(const Setup& setup);

// What the result hash takes of an event, little-endian.
void log_event(std::vector<uint8_t>& log, int64_t time_ps, const nic::Event& event);
// A fault on the NIC, with why the handler ended, when the model knows.
[[nodiscard]] Error explain(const Error& error, const sim::Node& node);

}  // namespace spinloom::app
