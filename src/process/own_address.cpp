#include "process/own_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <charconv>
#include <string>

namespace spinloom::process {

std::optional<uint32_t> own_address(std::string_view text) {
  const size_t slash = text.find('/');
  in_addr read{};
  if (inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &read) != 1) return {};
  const uint32_t address = ntohl(read.s_addr);
  if (slash == std::string_view::npos) return address;
  uint32_t bits = 0;
  const char* const last = text.data() + text.size();
  const auto [end, trouble] = std::from_chars(text.data() + slash + 1, last, bits);
  if (trouble != std::errc() || end != last || bits < 1 || bits > 32) return {};
  const uint32_t mask = ~uint32_t{0} << (32 - bits);
  uint32_t found = address & mask;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    const uint32_t here = ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
    if ((here & mask) != (address & mask)) continue;
    found = here;
    break;
  }
  freeifaddrs(list);
  return found;
}

}  // namespace spinloom::process
