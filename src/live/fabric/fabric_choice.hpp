// FabricChoice - which of libfabric's providers a process uses, and why.
//
// Contract: read_wish() reads SPINLOOM_FABRIC: auto, none, or PROVIDER or PROVIDER:DOMAIN. cost_of() is the order in
//   which providers are tried: the lowest first; `automatic_max` is the highest cost that `auto` accepts. Above it are
//   providers that we do not know, and those that are no faster than our datagrams (udp_transport.hpp). open_fabric()
//   loads libfabric, opens the cheapest provider that the wish allows, and says in its Error what was tried.
// Threads: one owner. Time: open_fabric() looks at every network device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "live/fabric/fabric_port.hpp"

namespace spinloom::live {

struct FabricWish {
  enum class Kind : uint8_t { none, automatic, named };
  Kind kind = Kind::automatic;
  std::string provider;  // the provider that Kind::named asks for; empty: any, at whatever cost
  std::string domain;  // empty: any
};

[[nodiscard]] std::optional<FabricWish> read_wish(std::string_view text);

// 0 and 1: the network moves the bytes; 2: a provider that is unknown here; from 3 on: software over sockets or in the
// shared memory of one machine.
[[nodiscard]] unsigned cost_of(std::string_view provider);
inline constexpr unsigned unknown_cost = 2;
inline constexpr unsigned automatic_max = 1;  // docs/live.md, Speed, has tcp beside our datagrams

struct FabricOpenOptions {
  uint32_t address = 0;  // IPv4, host order: the interface that providers over IP use; 0: any
  std::string library;  // the path of libfabric; empty: where the system finds it
};

[[nodiscard]] Result<std::unique_ptr<FabricPort>> open_fabric(const FabricWish& wish, const FabricOpenOptions& place);

// For people: the library that is loaded, and what it offers, cheapest first.
struct FabricList {
  struct Entry {
    std::string provider;
    std::string domain;
  };
  std::string library;
  std::vector<Entry> entries;
};
[[nodiscard]] Result<FabricList> list_fabrics(const std::string& library);

}  // namespace spinloom::live
