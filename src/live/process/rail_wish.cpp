#include "live/process/rail_wish.hpp"

#include "base/result.hpp"
#include "live/process/own_address.hpp"
#include "portals/rails/rails.hpp"

namespace spinloom::process {
namespace {

std::optional<RailWish> read_rail(std::string_view word) {
  RailWish wish;
  wish.name = word;
  if (word == "auto") return wish;
  if (word == "shm") {
    wish.transport = TransportChoice::shm;
    return wish;
  }
  const size_t equals = word.find('=');
  const std::string_view kind = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (equals != std::string_view::npos && value.empty()) return std::nullopt;
  if (kind == "udp") {
    wish.transport = TransportChoice::udp;
    if (value.empty()) return wish;
    wish.udp_address = own_address(value);
    return wish.udp_address ? std::optional(wish) : std::nullopt;
  }
  if (kind != "fabric") return std::nullopt;
  wish.transport = TransportChoice::fabric;
  if (value.empty()) return wish;
  wish.fabric = live::read_wish(value);
  return wish.fabric ? std::optional(wish) : std::nullopt;
}

}  // namespace

std::optional<std::vector<RailWish>> read_rails(std::string_view value) {
  std::vector<RailWish> rails;
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find(',', at), value.size());
    const auto rail = read_rail(value.substr(at, end - at));
    if (!rail || rails.size() == rails::Rails::rails_max) return std::nullopt;
    rails.push_back(*rail);
    at = end + 1;
  }
  return rails;
}

Settings settings_of(const Settings& settings, uint32_t rail) {
  if (settings.rails.empty()) return settings;
  Settings own = settings;
  const RailWish& wish = settings.rails[rail];
  own.transport = wish.transport;
  if (wish.udp_address) {
    own.udp_address = *wish.udp_address;
    own.udp_networks = {{*wish.udp_address, 0}};
  }
  if (wish.fabric) own.fabric = *wish.fabric;
  if (rail > 0) {
    if (!own.record.empty()) own.record += text(".rail", rail);
    if (!own.trace.empty()) own.trace += text(".rail", rail);
    own.faults.seed += uint64_t{1000} * rail;
    own.fabric_faults.seed += uint64_t{1000} * rail;
  }
  return own;
}

}  // namespace spinloom::process
