// Settings - what the environment asks of the live library: the variables SPINLOOM_... that it knows.
//
// Contract: read_settings() takes them all; what is misspelt or has a value that nobody knows is a warning, a sentence
//   with the names or values that there are, and the default stands.
// Threads: any. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "live/datagram_port.hpp"
#include "live/shm_transport.hpp"
#include "process/images.hpp"

namespace spinloom::process {

enum class Way : uint8_t { automatic, shm, udp };

struct Settings {
  live::CopyMode copy = live::CopyMode::automatic;
  Way transport = Way::automatic;
  HandlerKind handlers = HandlerKind::sandbox;
  std::vector<std::string> handler_folders;
  uint32_t hpus = 4;
  uint32_t spin_us = 100;
  uint32_t start_s = 300;
  uint32_t end_s = 300;  // 0: for ever
  uint32_t udp_address = 0;  // 0: any
  live::Faults faults;
  std::string record;
  std::string trace;
  std::vector<std::string> warnings;
};

struct Variable {
  const char* name;
  const char* values;   // what it takes
  const char* meaning;  // one sentence
};

[[nodiscard]] std::span<const Variable> variables();
// `environment`: as of main().
[[nodiscard]] Settings read_settings(const char* const* environment);

}  // namespace spinloom::process
