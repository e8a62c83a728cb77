// FabricOffer - what a process tells its peers about its fabric, once they know that they need one.
//
// Contract: write() makes a text for the launcher's exchange, and read_offer() makes an offer of that text. It is the
//   same offer, but for what write() leaves out: the ends of long fields, and the trouble where there is an address.
//   Any other text is an Error. Two processes talk over the fabric if both have opened the same provider.
// Threads: plain values. Time: none.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spinloom::live {

struct FabricOffer {
  std::string provider;  // empty: this process has no fabric
  std::string address;   // any bytes
  std::string trouble;   // the reason why this process has no fabric

  bool operator==(const FabricOffer&) const = default;
};

[[nodiscard]] std::string write(const FabricOffer& offer);
[[nodiscard]] Result<FabricOffer> read_offer(const std::string& text);
// Says why these two processes do not talk over the fabric; empty if they do.
[[nodiscard]] std::string why_no_fabric(const FabricOffer& mine, const FabricOffer& other);

}  // namespace spinloom::live
