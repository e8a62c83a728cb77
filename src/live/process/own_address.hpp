// OwnAddress - an IPv4 address that this machine has on a network, so that one setting does for all machines of a job.
//
// Contract: own_address("10.1.2.3") is that address, whether it is one of this machine or not.
//   own_address("10.1.0.0/16") is the address of this machine's first interface that is up and has one on that network.
//   If there is none, it is the network's own address. No interface has that address, so opening a socket there
//   fails with an error that says so. A text of another form gives nothing. Addresses have their first byte on top.
//   own_networks() reads several such texts with ',' between them. It leaves out networks on which this machine has no
//   address, as long as it has one on another.
// Threads: any. Time: one look at the interfaces, for a network only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "live/launch/udp_network.hpp"

namespace spinloom::process {

[[nodiscard]] std::optional<uint32_t> own_address(std::string_view text);

// A network has `bits` 0 if the text gives an address without a length. Nothing: some text has another form, or there
// are more than BusinessCard::networks_max.
[[nodiscard]] std::optional<std::vector<live::UdpNetwork>> own_networks(std::string_view text);

}  // namespace spinloom::process
