// Settings - the live library's settings, from the environment variables SPINLOOM_...
//
// Contract: read_settings() reads all of them. An unknown name makes a warning, with the nearest known name if there is
//   one. An unknown value makes a warning that says what the variable takes, and the default is used.
// Threads: any. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "live/fabric/fabric_choice.hpp"
#include "live/fabric/fabric_faults.hpp"
#include "live/launch/business_card.hpp"
#include "live/process/images.hpp"
#include "live/shm/shm_transport.hpp"
#include "live/udp/datagram_port.hpp"

namespace spinloom::process {

enum class TransportChoice : uint8_t { automatic, shm, udp, fabric };

// The time at which ranks of one machine meet: two at a time at their first contact, or all of them in PtlInit.
enum class Meet : uint8_t { contact, start };

// The way in which one of several NICs of a process reaches its peers.
struct RailWish {
  std::string name;  // the text of the setting
  TransportChoice transport = TransportChoice::automatic;
  std::optional<uint32_t> udp_address;  // nothing: the one of Settings
  std::optional<live::FabricWish> fabric;  // nothing: the one of Settings
};

struct Settings {
  live::CopyMode copy = live::CopyMode::automatic;
  live::DirectMode direct = live::DirectMode::automatic;
  TransportChoice transport = TransportChoice::automatic;
  Meet meet = Meet::contact;
  HandlerKind handlers = HandlerKind::sandbox;
  std::vector<std::string> handler_folders;
  uint32_t hpus = 4;
  uint32_t spin_us = 100;
  uint32_t start_s = 300;  // 0: for ever
  uint32_t end_s = 300;  // 0: for ever
  uint32_t udp_address = 0;  // address on the first of udp_networks; 0: none was given
  std::vector<live::UdpNetwork> udp_networks;  // empty: that of the first interface
  live::Gateway gateway = live::Gateway::no;
  bool gateway_stores = false;  // the gateway stores messages before it passes them on
  live::Faults faults;
  live::FabricWish fabric;
  live::FabricFaults fabric_faults;
  std::string libfabric;  // the library's file; empty: where the system finds it
  std::vector<RailWish> rails;  // empty: one NIC
  std::string record;
  std::string trace;
  std::vector<std::string> warnings;
};

struct Variable {
  const char* name;
  const char* values;  // its legal values
  const char* meaning;  // its meaning in one sentence
};

[[nodiscard]] std::span<const Variable> variables();
// True if the settings ask for nothing that all ranks have to agree on.
[[nodiscard]] bool may_meet_at_contact(const Settings& settings);
// `environment` has the form of main()'s third argument.
[[nodiscard]] Settings read_settings(const char* const* environment);

}  // namespace spinloom::process
