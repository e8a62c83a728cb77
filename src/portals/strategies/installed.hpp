// Installed - installs a plan on a NIC: its constants and state in NIC memory, and the execution context over them.
//
// Contract: install() allocates, writes and creates; after an Error nothing is left on the NIC. uninstall() gives
//   everything back.
// Threads: the owner of the Interface. Time: that of its port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "portals/interface/interface.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::strategies {

// A loaded handler image: its index with the driver, and the entry points of its handlers.
struct HandlerImage {
  std::string name;
  uint32_t index = 0;
  std::optional<uint32_t> payload_entry;
  std::optional<uint32_t> completion_entry;
  std::optional<uint32_t> header_entry;
};

struct Installed {
  std::optional<uint64_t> constants_offset;  // an offset in NIC memory
  std::optional<uint64_t> state_offset;
  std::optional<nic::ContextId> context;
};

[[nodiscard]] Result<Installed> install(portals::Interface& interface, const std::vector<HandlerImage>& images,
                                        std::string_view image_name, const Plan& plan);
// A context of handlers without NIC memory of their own.
[[nodiscard]] Result<nic::ContextId> create_context(portals::Interface& interface,
                                                    const std::vector<HandlerImage>& images,
                                                    std::string_view image_name, uint32_t user_header_bytes = 0);
[[nodiscard]] Status uninstall(portals::Interface& interface, Installed& installed);

}  // namespace spinloom::strategies
