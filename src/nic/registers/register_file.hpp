// RegisterFile - the control registers of one NIC: reads, writes, and the configuration that they make.
//
// Contract: read() and write() follow docs/registers.md. A refused write gives an Error and changes nothing.
//   configuration() is the configuration that the registers make; the device hears of each change. set_reported() is
//   for a device that is configured by others, too: the registers then have the values that it reports. These values
//   are not checked, and the device does not hear of them.
// Invariants: (1) writes change registers of me only while me/valid is 0, those of her, her_meta and the initialisation
//   handlers only while her/valid is 0; (2) a valid is 1 exactly while its part of the configuration is in force.
// Threads: one at a time. Time: none. Work: a write looks at most at all registers of three groups.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "nic/registers/configuration.hpp"
#include "nic/registers/device.hpp"
#include "nic/registers/map.hpp"

namespace spinloom::registers {

class RegisterFile {
 public:
  // The device outlives the file.
  RegisterFile(const Map& map, Device& device);

  [[nodiscard]] const Map& map() const { return map_; }
  [[nodiscard]] const Configuration& configuration() const { return configuration_; }

  [[nodiscard]] uint32_t read(RegisterInstance place);
  [[nodiscard]] Result<uint32_t> read(uint32_t address);
  [[nodiscard]] Result<uint32_t> read(std::string_view path);
  Status write(RegisterInstance place, uint32_t value);
  Status write(uint32_t address, uint32_t value);
  Status write(std::string_view path, uint32_t value);

  // Sets registers to values that the device reports. Each place is of access `kept`.
  void set_reported(std::span<const std::pair<RegisterInstance, uint32_t>> values);

  // Returns what read() gives, without effects: nothing is taken out of a queue, whose value is 0 here.
  [[nodiscard]] uint32_t peek(RegisterInstance place) const;

  // Returns lines for people that say what is in force.
  [[nodiscard]] std::string status_text() const;

 private:
  [[nodiscard]] uint32_t kept_value(Register id, uint32_t index = 0) const { return values_[map_.number({id, index})]; }
  [[nodiscard]] Status may_write(RegisterInstance place, uint32_t value) const;
  void apply_words();
  Status install_matching();
  Status install_contexts();
  [[nodiscard]] std::vector<RuleSet> rule_sets() const;
  [[nodiscard]] std::vector<Context> contexts() const;
  Status call(uint32_t context);

  [[nodiscard]] RuleSet rule_set(uint32_t set) const;
  [[nodiscard]] Context context(uint32_t index) const;
  [[nodiscard]] Window window(Register address, Register size, uint32_t index) const;
  [[nodiscard]] Status check(const RuleSet& set, uint32_t index) const;
  [[nodiscard]] Status check(const Context& context, uint32_t index) const;

  Map map_;
  Device& device_;
  std::vector<uint32_t> values_;  // one for each register; used for those of access `kept`
  Configuration configuration_;
};

}  // namespace spinloom::registers
