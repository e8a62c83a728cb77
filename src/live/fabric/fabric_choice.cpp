#include "live/fabric/fabric_choice.hpp"

#include <array>
#include <utility>

namespace spinloom::live {

std::optional<FabricWish> read_wish(std::string_view text) {
  FabricWish wish;
  if (text == "auto") return wish;
  if (text == "none") {
    wish.kind = FabricWish::Kind::none;
    return wish;
  }
  const size_t colon = text.find(':');
  wish.kind = FabricWish::Kind::named;
  wish.provider = text.substr(0, colon);
  if (colon != std::string_view::npos) wish.domain = text.substr(colon + 1);
  if (wish.provider.empty() || (colon != std::string_view::npos && wish.domain.empty())) return std::nullopt;
  return wish;
}

// The cost of a provider depends on its own name, which stands before its helper's: "verbs;ofi_rxm" is verbs. Providers
// over IP sockets come in the order of half a round trip that was measured here; shm reaches no other machine.
unsigned cost_of(std::string_view provider) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 14> costs{{{"cxi", 0},
                                                                         {"opx", 0},
                                                                         {"psm3", 0},
                                                                         {"psm2", 0},
                                                                         {"psm", 0},
                                                                         {"efa", 1},
                                                                         {"verbs", 1},
                                                                         {"gni", 1},
                                                                         {"ucx", 1},
                                                                         {"tcp", 3},
                                                                         {"net", 4},
                                                                         {"udp", 5},
                                                                         {"sockets", 6},
                                                                         {"shm", 7}}};
  const std::string_view own = provider.substr(0, provider.find(';'));
  for (const auto& [name, cost] : costs) {
    if (name == own) return cost;
  }
  return unknown_cost;
}

}  // namespace spinloom::live
