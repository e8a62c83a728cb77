// HpuBank - the handler processors of one simulated NIC, run in slices of virtual time.
//
// Contract: run(her) starts a handler on HPU her.hpu. Its calls and its end come back through HpuClient, in the order
//   of virtual time. The client answers a call by resume(). All cores share one clock that ticks from time zero; a
//   handler starts on a tick.
// Invariants: (1) an HPU runs one handler at a time; (2) a slice ends at a call, an atomic, an access to shared
//   writable memory or after Q cycles, and slices are served in virtual-time order, so results do not depend on Q. In
//   a clustered NIC every access to memory that HPUs share also ends a slice, and waits for its port and bank; (3) a
//   handler past its budget is stopped at the end of its slice.
// Threads: one owner. Time: virtual; a cycle is 1/clock, rounded up once per time stamp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nic/hpu/core.hpp"
#include "nic/hpu/function_profile.hpp"
#include "nic/hpu/instruction_profile.hpp"
#include "nic/hpu/timing_stalls.hpp"
#include "nic/portals/nic.hpp"
#include "nic/spin/handler_abi.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/memory_ports.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/trace.hpp"

namespace spinloom::simulated {

class HpuClient {
 public:
  // Carries out a call. Returns true if the handler must stop; if false, resume() answers the call, now or later.
  virtual bool on_handler_call(const nic::Her& her, const nic::HandlerCall& call) = 0;
  virtual void on_handler_end(const nic::Her& her, nic::HandlerEnd end, uint32_t code, uint64_t cycles,
                              const std::string& reason) = 0;

 protected:
  ~HpuClient() = default;
};

// Totals over the handlers that have ended, by kind.
struct HandlerStatistics {
  uint64_t handlers = 0;
  uint64_t cycles = 0;
  uint64_t instructions = 0;
  uint64_t calls = 0;
  uint64_t loads = 0;
  uint64_t stores = 0;
  uint64_t atomics = 0;
  uint64_t mispredicts = 0;
  hpu::Stalls stalls;
  uint64_t cycles_min = 0;
  uint64_t cycles_max = 0;
  // Cycles from the handler's start to its first call (to its end if it makes none): the work before the first block
  // moves.
  uint64_t first_call_cycles = 0;
  uint64_t first_call_cycles_min = 0;
};

class HpuBank final : EventTarget {
 public:
  static Result<std::unique_ptr<HpuBank>> create(EventQueue& events, HpuClient& client, const Profile& profile,
                                                 uint32_t hpus, uint32_t slice_cycles);

  // The images, which a context names by index, must outlive the bank.
  void install(const std::vector<hpu::Image>& images) { images_ = &images; }
  // Returns an Error if these cores cannot run the handlers of an image.
  [[nodiscard]] Status check_image(uint32_t image) const;
  // Records the calls and handlers that end from now on; null stops recording. The trace outlives the bank.
  void record(Trace* trace) { trace_ = trace; }
  // Starts a handler at the first tick not before `start`.
  void run(const nic::Her& her, const nic::Context& context, std::span<uint8_t> nic_memory, Time start);
  // Answers the call in which this handler waits; `value` is the call's result.
  void resume(nic::HerId her, uint32_t value);

  [[nodiscard]] const HandlerStatistics& statistics(nic::HandlerKind kind) const {
    return statistics_[static_cast<size_t>(kind)];
  }
  [[nodiscard]] Time busy() const { return busy_; }
  // The time when the newest handler ended.
  [[nodiscard]] Time last_end() const { return last_end_; }
  // The HPU on which this HER runs; none if it does not run.
  [[nodiscard]] std::optional<uint32_t> hpu_of(nic::HerId her) const;
  // From now on, also counts cycles by function of the images, for handlers of all kinds.
  void profile_functions();
  [[nodiscard]] std::map<std::string, uint64_t> function_cycles() const;
  // From now on, also counts cycles and accesses by instruction.
  void profile_instructions();
  // Cycles and accesses by image, in the order in which images were installed; empty unless profile_instructions() was
  // called.
  [[nodiscard]] const std::vector<hpu::InstructionProfile>& instructions() const { return instructions_; }

 private:
  struct Unit {
    // Core and stack are made when the HPU runs its first handler: most NICs of a large job never use most of their
    // HPUs.
    std::optional<hpu::Core> core;
    hpu::AddressSpace memory;
    std::vector<uint8_t> stack;
    nic::Her her;
    hpu::Stop stop;
    hpu::Counters at_start;
    uint64_t start_cycle = 0;
    uint64_t budget_cycles = 0;
    uint64_t constants_offset = 0;  // offset of the context's windows in NIC memory
    uint64_t state_offset = 0;
    uint64_t first_call_cycle = 0;
    uint32_t call = 0;  // number of the handler's newest call
    bool has_called = false;  // the handler has made a call
    bool is_answered = false;  // its newest call was answered
    bool is_asking = false;  // the handler waits for the answer to its call
    bool is_running = false;  // the HPU runs a handler
  };
  HpuBank(EventQueue& events, HpuClient& client, Rate cycle, uint32_t hpus, uint32_t slice_cycles,
          const hpu::TimingParameters& timing);
  void on_event(uint32_t code, uint64_t argument) override;
  void run_slice(uint64_t index);
  uint64_t granted_cycle(const Unit& unit);
  void finish(Unit& unit, nic::HandlerEnd end, const std::string& reason);
  [[nodiscard]] uint64_t cycle_at_or_after(Time time) const;

  EventQueue& events_;
  HpuClient& client_;
  Rate cycle_;
  uint32_t hpus_;
  uint32_t slice_cycles_;
  hpu::TimingParameters timing_;
  const std::vector<hpu::Image>* images_ = nullptr;
  bool has_float_ = false;
  std::vector<Unit> units_;
  uint64_t calling_unit_ = 0;  // the unit that made the newest call, where hpu_of() looks first
  std::array<HandlerStatistics, spin::handler_kinds> statistics_{};
  Trace* trace_ = nullptr;
  Time busy_{};
  Time last_end_{};
  struct {
    hpu::LatencyClass constants = hpu::LatencyClass::nic_memory;
    hpu::LatencyClass state = hpu::LatencyClass::nic_memory;
    hpu::LatencyClass packets = hpu::LatencyClass::packet_buffer;
  } latency_classes_;
  std::optional<MemoryPorts> ports_;               // clustered NICs only
  std::vector<hpu::FunctionProfile> functions_;  // one for each image; empty unless profile_functions() was called
  std::vector<hpu::InstructionProfile> instructions_;
};

// The core's timing parameters, taken from the profile.
[[nodiscard]] hpu::TimingParameters timing_of(const Profile& profile);

}  // namespace spinloom::simulated
