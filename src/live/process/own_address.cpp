#include "live/process/own_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <charconv>
#include <string>

#include "live/launch/business_card.hpp"

namespace spinloom::process {
namespace {

// A network. If `is_here` is true, its address is this machine's on that network, or the one that the text gave alone.
struct NetworkChoice {
  live::UdpNetwork network;
  bool is_here = true;
};

std::optional<NetworkChoice> find_network(std::string_view text) {
  const size_t slash = text.find('/');
  in_addr read{};
  if (inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &read) != 1) return {};
  NetworkChoice choice{{ntohl(read.s_addr), 0}};
  if (slash == std::string_view::npos) return choice;
  const char* const last = text.data() + text.size();
  const auto [end, trouble] = std::from_chars(text.data() + slash + 1, last, choice.network.bits);
  if (trouble != std::errc() || end != last || choice.network.bits < 1 || choice.network.bits > 32) return {};
  choice.network.address &= choice.network.mask();
  choice.is_here = false;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return choice;
  for (const ifaddrs* one = list; one != nullptr && !choice.is_here; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    const uint32_t here = ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
    choice.is_here = choice.network.holds(here);
    if (choice.is_here) choice.network.address = here;
  }
  freeifaddrs(list);
  return choice;
}

}  // namespace

std::optional<uint32_t> own_address(std::string_view text) {
  const auto choice = find_network(text);
  return choice ? std::optional(choice->network.address) : std::nullopt;
}

std::optional<std::vector<live::UdpNetwork>> own_networks(std::string_view text) {
  std::vector<live::UdpNetwork> here;
  std::vector<live::UdpNetwork> elsewhere;
  while (true) {
    const size_t comma = text.find(',');
    const auto choice = find_network(text.substr(0, comma));
    if (!choice || here.size() + elsewhere.size() == live::BusinessCard::networks_max) return {};
    (choice->is_here ? here : elsewhere).push_back(choice->network);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return here.empty() ? elsewhere : here;
}

}  // namespace spinloom::process
