// PlainBoard - for tests: registers and memory with no NIC behind them.
//
// Contract: memory starts as zeros; `told` registers read what a test has put into `told`; calls and configurations are
//   recorded; handlers' output is what print() was given.
// Threads: one. Time: none.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "nic/registers/device.hpp"

namespace spinloom::registers::test {

class PlainBoard : public Device, public NicMemory {
 public:
  std::map<std::pair<Register, uint32_t>, uint32_t> told;
  std::deque<uint32_t> stdout_words;
  std::vector<Window> mapped_windows = std::vector<Window>(256);
  std::vector<HostCall> calls;
  std::vector<Configuration> configurations;
  std::map<uint64_t, uint32_t> memory;  // 32-bit words that have been written; others are 0

  void print(uint32_t cluster, uint32_t core, std::string_view text) {
    for (const char c : text) stdout_words.push_back(stdout_word(cluster, core, static_cast<uint8_t>(c)));
  }

  [[nodiscard]] uint32_t value_of(RegisterInstance place) const override {
    const auto found = told.find({place.id, place.index});
    return found == told.end() ? 0 : found->second;
  }
  uint32_t pop_stdout() override {
    if (stdout_words.empty()) return stdout_empty;
    const uint32_t word = stdout_words.front();
    stdout_words.pop_front();
    return word;
  }
  [[nodiscard]] Window mapped(uint32_t context) const override { return mapped_windows[context]; }
  Status call(const HostCall& call) override {
    calls.push_back(call);
    ++told[{Register::spinloom_call, call.context}];
    return {};
  }
  void configuration_changed(const Configuration& configuration) override { configurations.push_back(configuration); }
  [[nodiscard]] std::string status_text() const override { return "board: nothing behind it\n"; }

  Status read(uint64_t address, std::span<uint64_t> words) const override {
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = half(address + 8 * i) | uint64_t{half(address + 8 * i + 4)} << 32;
    }
    return {};
  }
  Status write(uint64_t address, std::span<const uint64_t> words) override {
    for (size_t i = 0; i < words.size(); ++i) {
      memory[address + 8 * i] = static_cast<uint32_t>(words[i]);
      memory[address + 8 * i + 4] = static_cast<uint32_t>(words[i] >> 32);
    }
    return {};
  }

 private:
  [[nodiscard]] uint32_t half(uint64_t address) const {
    const auto found = memory.find(address);
    return found == memory.end() ? 0 : found->second;
  }
};

}  // namespace spinloom::registers::test
