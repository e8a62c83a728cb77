// Device - the NIC behind the registers: the questions and the changes that a register file brings to it.
//
// Contract: implemented by the NIC. No call may call the register file. configuration_changed() comes after each write
//   that changes the configuration, with all of it.
// Threads: called by the register file's thread. Time: none.
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "nic/registers/configuration.hpp"
#include "nic/registers/map.hpp"

namespace spinloom::registers {

inline constexpr uint32_t stdout_empty = 0xffffffff;

// A word of cl/fifo.
[[nodiscard]] constexpr uint32_t stdout_word(uint32_t cluster, uint32_t core, uint8_t character) {
  return cluster << 16 | core << 8 | character;
}

class Device {
 public:
  virtual ~Device() = default;

  // Returns the value of a register of access `told` or `command`.
  [[nodiscard]] virtual uint32_t value_of(RegisterInstance place) const = 0;

  // Takes the next character that a handler has printed, or stdout_empty.
  virtual uint32_t pop_stdout() = 0;

  // Returns the host memory that a process has mapped for the context.
  [[nodiscard]] virtual Window mapped(uint32_t context) const = 0;

  // Takes a call that has passed the checks; an Error if that is not possible now.
  virtual Status call(const HostCall& call) = 0;

  // An Error, with the reason, if giving another value to this register of access `kept` would have no effect.
  [[nodiscard]] virtual Status may_change(RegisterInstance, uint32_t) const { return {}; }

  virtual void configuration_changed(const Configuration& configuration) = 0;

  // More lines for the answer to "status".
  [[nodiscard]] virtual std::string status_text() const { return {}; }
};

// The NIC's memory as a host reads and writes it, by the addresses that handlers use.
class NicMemory {
 public:
  virtual ~NicMemory() = default;
  // The bytes lie in handler memory or in program memory; the address is a multiple of 4.
  virtual Status read(uint64_t address, std::span<uint64_t> words) const = 0;
  virtual Status write(uint64_t address, std::span<const uint64_t> words) = 0;
};

}  // namespace spinloom::registers
