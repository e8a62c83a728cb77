// Rule text - rule sets by the names that users write.
//
//   udp:PORT   datagrams for this port      slmp    SLMP's: udp:9330, with its end of message
//   icmp       all of ICMP                  arp     all of ARP
//   ip         all of IPv4                  all     every frame
//
// Contract: rules of IPv4 hold for headers without options and, those with a protocol, for packets that are not
//   fragments, because only there the next header lies where the rules look. Anything else is an Error that lists
//   these.
// Threads: pure. Time: none.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "nic/frames/rule_set.hpp"

namespace spinloom::ethernet {

[[nodiscard]] Result<frames::RuleSet> rule_set_named(std::string_view text);

}  // namespace spinloom::ethernet
