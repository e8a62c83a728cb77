// Testbed - some ranks over a driver, so that scenarios are written once and run over every driver.
//
// Contract: rank(i) is the interface of rank i's host. handlers(name) makes the named scenario handlers
//   (scenarios.hpp says what each does) usable in contexts of any rank.
// Invariants: (1) interfaces live as long as the testbed; (2) settle() returns when nothing is under way between ranks
//   that live.
// Threads: one owner. Time: that of the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "nic/portals/nic.hpp"
#include "portals/interface/interface.hpp"

namespace spinloom::testbed {

// The image and entry numbers for a context.
struct TestHandlers {
  uint32_t image = 0;
  std::optional<uint32_t> payload_entry;
  std::optional<uint32_t> completion_entry;
};

class Testbed {
 public:
  virtual ~Testbed() = default;
  [[nodiscard]] virtual uint32_t ranks() const = 0;
  [[nodiscard]] virtual portals::Interface& rank(uint32_t rank) = 0;
  [[nodiscard]] virtual const nic::Nic& nic(uint32_t rank) const = 0;
  [[nodiscard]] virtual Result<TestHandlers> handlers(std::string_view name) = 0;
  [[nodiscard]] virtual Status settle() = 0;
  // The rank dies at once; the others find out as they can. Nobody calls for this rank then, or later. A testbed whose
  // driver has no deaths says so.
  [[nodiscard]] virtual Status kill(uint32_t rank) {
    return fail(Code::unsupported, "no rank of this testbed can die, and rank ", rank, " neither");
  }
};

}  // namespace spinloom::testbed
