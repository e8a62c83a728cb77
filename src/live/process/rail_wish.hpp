// RailWish - the way in which one NIC of a process reaches its peers, as SPINLOOM_RAILS names it.
//
// Contract: read_rails() reads a list, separated by commas, of auto, shm, udp, udp=ADDRESS, fabric and fabric=PROVIDER.
//   ADDRESS has the form of one address or network of SPINLOOM_UDP_ADDRESS, PROVIDER that of SPINLOOM_FABRIC. For any
//   other text, and for more than Rails::rails_max rails, it returns nothing. settings_of() returns the settings for
//   the LiveProcess of one NIC.
// Threads: any. Time: none.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "live/process/settings.hpp"

namespace spinloom::process {

[[nodiscard]] std::optional<std::vector<RailWish>> read_rails(std::string_view value);
[[nodiscard]] Settings settings_of(const Settings& settings, uint32_t rail);

}  // namespace spinloom::process
