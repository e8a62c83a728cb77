// FabricOffer - what a process tells its peers about its fabric, once they know that they need one.
//
// Contract: write() makes a text for the launcher's exchange, read_offer() the same offer of that text; any other text
//   is an Error. Two processes talk over the fabric if both have opened the same provider.
// Threads: plain values. Time: none.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spinloom::live {

struct FabricOffer {
  std::string provider;  // empty: this process has no fabric
  std::string address;   // any bytes
  std::string trouble;   // why it has none

  bool operator==(const FabricOffer&) const = default;
};

[[nodiscard]] std::string write(const FabricOffer& offer);
[[nodiscard]] Result<FabricOffer> read_offer(const std::string& text);
// Why these two do not talk over the fabric; empty: they do.
[[nodiscard]] std::string apart(const FabricOffer& mine, const FabricOffer& other);

}  // namespace spinloom::live
