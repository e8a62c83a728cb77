// Service - a live NIC's sockets: the desk where programs come (spinloom/ethernet.h), and the control registers that
// `spinloom nic` reads and writes.
//
// Contract: open() listens under the NIC's name. serve() answers requests that have come, unless a handler runs.
//   Registers say what the card does. Those of group me and spinloom/active and call change it. Contexts are installed
//   by programs and by the process itself, whose handlers are files, and run on the card's thread: other registers that
//   would change them refuse it, with the reason. Registers show 4096 bytes for each handler, as the board's library
//   says, and the address at which it begins in a sandboxed image, or 0 for a native one. Tools may also read and write
//   NIC memory.
// Invariants: (1) rule sets change as a whole; (2) lines that handlers print wait for a reader, stdout_characters at
//   most, and then the oldest are lost.
// Threads: the card's owner. Time: none.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ethernet/device/card.hpp"
#include "ethernet/device/printed_line.hpp"
#include "ethernet/host/desk.hpp"
#include "nic/registers/control.hpp"

namespace spinloom::ethernet {

class Service final : host::NicServices, registers::Device, registers::NicMemory, host::RecordHandler {
 public:
  static constexpr size_t stdout_characters = 8192;  // the board has as many

  // `rule_sets` are in force already, each for the context of its number.
  static Result<std::unique_ptr<Service>> open(const std::string& nic, Card& card,
                                               std::vector<frames::RuleSet> rule_sets);
  void serve();

 private:
  Service(Card& card, std::vector<frames::RuleSet> rule_sets, const registers::Map& map);
  [[nodiscard]] Result<ContextId> context_for(const host::Request& request) const;
  [[nodiscard]] Status configure(std::vector<frames::RuleSet> rule_sets);
  void show_rules();
  void show_contexts();
  void print(const frames::DebugLine& line);

  // host::NicServices
  Result<host::InstalledContext> install(const host::Request& request) override;
  Status activate(uint32_t context, const frames::RuleSet& rules) override;
  Status deactivate(uint32_t context) override;
  Status remove(uint32_t context) override;
  Status invoke(uint32_t context, uint32_t message) override;
  void frames_read(uint32_t context, uint32_t entries) override;
  const frames::Counts& counts() const override { return card_.nic().counts(); }

  // registers::Device
  [[nodiscard]] uint32_t value_of(registers::RegisterInstance place) const override;
  uint32_t pop_stdout() override;
  [[nodiscard]] registers::Window mapped(uint32_t context) const override;
  Status call(const registers::HostCall& call) override;
  [[nodiscard]] Status may_change(registers::RegisterInstance place, uint32_t value) const override;
  void configuration_changed(const registers::Configuration& configuration) override;
  [[nodiscard]] std::string status_text() const override;

  // registers::NicMemory
  Status read(uint64_t address, std::span<uint64_t> words) const override;
  Status write(uint64_t address, std::span<const uint64_t> words) override;
  [[nodiscard]] Result<uint8_t*> place_of(uint64_t address, uint64_t bytes) const;

  // host::RecordHandler, for tools
  void on_record(int client, std::span<const uint8_t> record) override;
  void on_disconnect(int) override {}

  Card& card_;
  std::vector<frames::RuleSet> rule_sets_;  // the rule sets in force; one for each context
  registers::RegisterFile file_;
  std::unique_ptr<host::Desk> desk_;
  std::unique_ptr<host::Listener> tools_;
  std::vector<uint32_t> calls_;  // the number of times that a tool has called each context
  std::deque<uint32_t> printed_;
};

}  // namespace spinloom::ethernet
