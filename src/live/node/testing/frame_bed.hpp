// FrameBed - an Ethernet NIC whose handlers run at once, natively or in the sandbox, for tests.
//
// Contract: install() loads NAME.elf or NAME.so, puts its handlers into context 0 and gives that every frame that the
//   rule set takes (a new bed's: all). arrive() returns when nothing is under way. `sent`, `to_host` and `lines` are
//   what came out. `host` is called whenever a handler yields: it stands for the host's program.
// Threads: one owner. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "live/node/handler_library.hpp"
#include "live/node/testing/frame_bytes.hpp"
#include "nic/frames/nic.hpp"
#include "spinloom/frame.h"

namespace spinloom::live {

class FrameBed final {
 public:
  explicit FrameBed(uint64_t state_bytes, uint64_t constant_bytes = 0, frames::Limits limits = {})
      : host_memory(1 << 17), library_(HandlerLibrary::create().value()) {
    limits.nic_memory_bytes = state_bytes + constant_bytes;
    nic = std::move(frames::Nic::create(limits).value());
    nic_memory_.resize(state_bytes + constant_bytes);
    packets_.resize(nic->packet_memory().bytes());
    context_.state = {0, state_bytes};
    context_.constants = {state_bytes, constant_bytes};
    rule_set = {frames::RuleMode::all, {frames::Rule::always()}, frames::Rule::never()};
  }

  void install(const std::string& path) {
    const auto image = library_->load(path);
    ASSERT_TRUE(image.ok()) << image.error().message;
    const auto entry = [&](const char* symbol) -> std::optional<uint32_t> {
      const auto found = library_->entry(*image, symbol);
      return found.ok() ? std::optional(*found) : std::nullopt;
    };
    context_.image = *image;
    context_.hpus = hpus;
    context_.header_entry = entry("header_handler");
    context_.payload_entry = entry("payload_handler");
    context_.completion_entry = entry("completion_handler");
    context_.handler_host_start = reinterpret_cast<uint64_t>(host_memory.data());
    context_.handler_host_length = host_memory.size();
    ASSERT_TRUE(nic->configure({rule_set}).ok());
    const Status made = nic->install(frames::ContextId{0}, {context_, false});
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_TRUE(nic->activate(frames::ContextId{0}).ok());
  }

  void arrive(const Bytes& bytes) {
    nic->on_frame({spin::PayloadRef::Space::local, bytes.data(), bytes.size()}, actions_);
    settle();
  }

  [[nodiscard]] std::span<uint8_t> state() { return std::span(nic_memory_).first(context_.state.length); }
  [[nodiscard]] std::span<uint8_t> constants() { return std::span(nic_memory_).subspan(context_.constants.offset); }
  template <class Value, class Memory>
  static Value value(const Memory& memory, uint64_t offset) {
    Value found{};
    EXPECT_LE(offset + sizeof found, memory.size());
    std::memcpy(&found, memory.data() + offset, sizeof found);
    return found;
  }
  template <class Value>
  [[nodiscard]] Value state_at(uint64_t offset) {
    return value<Value>(state(), offset);
  }
  template <class Value>
  [[nodiscard]] Value host_at(uint64_t offset) {
    return value<Value>(host_memory, offset);
  }
  [[nodiscard]] uint64_t count(frames::Count which) const { return nic->count(which); }

  std::unique_ptr<frames::Nic> nic;
  frames::RuleSet rule_set;
  Bytes host_memory;
  Frames sent;
  Frames to_host;
  std::vector<std::string> lines;
  std::function<void()> host = [] {};
  std::optional<spin::HpuMask> hpus;  // the HPUs that run the handlers; none: any

 private:
  class Calls final : public spin::HandlerCalls {
   public:
    Calls(FrameBed& bed, spin::HerId her) : bed_(bed), her_(her) {}
    std::optional<uint32_t> call(const spin::HandlerCall& given) override {
      if (bed_.nic->on_handler_call(her_, given, bed_.actions_)) return std::nullopt;
      if (given.call == SPL_CALL_YIELD) bed_.host();
      bed_.perform();
      const auto answer = bed_.answers_.extract(her_.value);
      EXPECT_FALSE(answer.empty()) << "call " << given.call << " is not answered, though nothing takes time here";
      if (answer.empty()) return std::nullopt;
      return answer.mapped();
    }

   private:
    FrameBed& bed_;
    spin::HerId her_;
  };

  void settle() {
    perform();
    while (!running_.empty()) {
      const spin::Her her = running_.front();
      running_.pop_front();
      Calls calls(*this, her.id);
      const spin::HandlerFrame given = frame_of(her, *nic->context(her.context), nic_memory_, nic->limits().hpus);
      const spin::HandlerOutcome outcome = library_->run(given, calls);
      nic->on_handler_done(her.id, outcome.end, outcome.code, actions_, outcome.cycles);
      perform();
    }
  }

  void perform() {
    while (!actions_.list.empty()) {
      frames::Actions now;
      std::swap(now.list, actions_.list);
      for (const frames::Action& action : now.list) std::visit([this](const auto& one) { perform(one); }, action);
    }
  }
  void perform(const frames::StoreFrame& store) {
    std::copy_n(store.bytes.bytes, store.bytes.length, packets_.data() + store.address);
    nic->on_stored(store.packet, packets_.data() + store.address, actions_);
  }
  void perform(const frames::ToHost& given) {
    to_host.emplace_back(given.bytes.bytes, given.bytes.bytes + given.bytes.length);
  }
  void perform(const frames::Transmit& transmit) {
    const spin::PayloadRef& bytes = transmit.frame.bytes;
    sent.emplace_back(bytes.bytes, bytes.bytes + bytes.length);
    nic->on_transmitted(transmit.frame, actions_);
  }
  void perform(const frames::RunHandler& run) { running_.push_back(run.her); }
  void perform(const spin::Resume& resume) { answers_[resume.her.value] = resume.value; }
  void perform(const spin::DmaWrite& write) {
    if (write.source.length > 0) std::memcpy(write.host, write.source.bytes, write.source.length);
    if (write.blocking) nic->on_dma_read(write.dma, actions_);
    nic->on_dma_done(write.dma, actions_);
  }
  void perform(const spin::DmaRead& read) {
    if (read.length > 0) std::memcpy(read.nic, read.host, read.length);
    nic->on_dma_done(read.dma, actions_);
  }
  void perform(const spin::DebugLine& line) { lines.push_back(line.text); }
  void perform(const frames::Initialised&) {}
  template <class Other>
  void perform(const Other&) {
    ADD_FAILURE() << "the bed does not perform this action";
  }

  std::shared_ptr<HandlerLibrary> library_;
  spin::Context context_;
  Bytes nic_memory_, packets_;
  frames::Actions actions_;
  std::deque<spin::Her> running_;
  std::map<uint64_t, uint32_t> answers_;
};

}  // namespace spinloom::live
