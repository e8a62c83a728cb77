// Card - the live Ethernet NIC: takes frames from a port, gives them to the engine and performs the engine's actions.
//
// Frames that no rule set takes leave through the host's port, and frames that arrive there go to the wire: the host is
// one whose network stack lies behind this NIC. Handlers run on the owner's thread, each to its end, natively or in the
// sandbox.
//
// Contract: install(), initialise(), configure() and activate() set the NIC up, at any time between turns. turn() takes
//   a batch from the wire, and one from the host's port once the last one has left, and does all that follows from it.
//   It returns true if there was anything to do. wait() sleeps until a port or a watched descriptor has something, or
//   the time is up; without any descriptor it returns at once. ended() is true when the wire was a file and all of it
//   has been dealt with. A handler that waits for its host, or for the wire, has Options::patience from its first wait
//   on; then it ends as over its budget. After an Error of a port, turn() returns it, and the NIC is of no more use.
// Invariants: (1) frames of one turn leave in the order in which they were sent; (2) a frame for the host that the
//   host's port does not take is lost and counted (to_host_lost); (3) nothing is allocated per frame once queues have
//   grown.
// Threads: one owner, except for running_handler(). Host programs may read and write host_memory() and state()
//   meanwhile, word by word: the NIC writes words of short writes whole, the first one last. Time: host time; only
//   patience and stages look at it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ethernet/device/stages.hpp"
#include "ethernet/host/shared_memory.hpp"
#include "ethernet/port/frame_port.hpp"
#include "live/node/handler_library.hpp"
#include "nic/frames/nic.hpp"
#include "nic/spin/nic_memory.hpp"

namespace spinloom::ethernet {

using frames::ContextId;
using port::Bytes;
using port::PortPointer;

struct Options {
  frames::Limits limits = live_limits();
  uint32_t batch = 64;  // frames taken from a port at a time
  std::chrono::nanoseconds patience = std::chrono::seconds(1);

  // Returns the board's limits, except that as many frames may go to a port at a time as come from it.
  static frames::Limits live_limits() {
    frames::Limits limits;
    limits.egress_depth = 64;
    return limits;
  }
};

// The parts of a context. Handlers are the functions header_handler, payload_handler, completion_handler, mail_handler
// and initialise_handler of the image, as far as it has them.
struct ContextSetup {
  // FILE.so (native) or FILE.elf (sandbox); empty: frames go to host memory, a ring (nic/frames/nic.hpp)
  std::string image;
  std::vector<uint8_t> constants;
  std::vector<uint8_t> state;  // its first bytes
  uint64_t state_bytes = 0;  // its length, if that is more than `state`; the rest is zero
  uint64_t host_bytes = 0;
  uint64_t budget_cycles = limits::handler_budget_cycles;
  std::optional<spin::HpuMask> hpus;
};

class Card final : private spin::HandlerCalls {
 public:
  // Without a host's port, frames for the host are counted and dropped.
  static Result<std::unique_ptr<Card>> create(const Options& options, PortPointer wire, PortPointer host = nullptr);

  // ---- setting up ----
  // Context n takes the frames of rule set n.
  [[nodiscard]] Status install(ContextId id, const ContextSetup& setup);
  // Runs the initialisation handler to its end. Returns an Error if it has not succeeded.
  [[nodiscard]] Status initialise(ContextId id);
  [[nodiscard]] bool is_initialised(ContextId id) const { return initialised_[id.value].value_or(false); }
  [[nodiscard]] Status activate(ContextId id, bool active = true) { return nic_->activate(id, active); }
  [[nodiscard]] Status configure(std::vector<frames::RuleSet> rule_sets) {
    return nic_->configure(std::move(rule_sets));
  }
  [[nodiscard]] Status remove(ContextId id);
  // Runs the payload handler without a frame. If the host's part (set_host_callback) calls this while a handler waits,
  // the payload handler runs when that one has ended.
  [[nodiscard]] Status invoke(ContextId id, uint32_t message);

  // ---- working ----
  [[nodiscard]] Result<bool> turn();
  void wait(std::chrono::milliseconds limit);
  // Calls turn(), once at least, until `go_on` returns false (it is called every 20 ms at most) or ended() is true.
  [[nodiscard]] Status run(const std::function<bool()>& go_on);
  [[nodiscard]] bool ended() const;

  // Makes wait() also return when this descriptor is readable. Ports and descriptors beyond eight in all are left out.
  void watch(int descriptor) { watched_.push_back(descriptor); }
  [[nodiscard]] bool in_handler() const { return running_.exists(); }
  // Sets the function that does the host's part in this process. It is called once a turn, and while a handler waits.
  void set_host_callback(std::function<void()> host) { host_callback_ = std::move(host); }
  // Sets the receiver of the lines that handlers print; until then they go to the log.
  void set_debug(std::function<void(const frames::DebugLine&)> debug) { debug_ = std::move(debug); }

  // ---- looking ----
  [[nodiscard]] frames::Nic& nic() { return *nic_; }
  [[nodiscard]] const frames::Nic& nic() const { return *nic_; }
  [[nodiscard]] port::FramePort& wire() { return *wire_; }
  [[nodiscard]] port::FramePort* host() { return host_.get(); }
  [[nodiscard]] std::span<uint8_t> state(ContextId id);
  [[nodiscard]] std::span<uint8_t> constants(ContextId id);
  [[nodiscard]] std::span<uint8_t> host_memory(ContextId id);
  // NIC memory, which programs map. The offsets of windows (state, constants) count from its first byte.
  [[nodiscard]] const host::SharedMemory& nic_memory() const { return nic_memory_; }
  [[nodiscard]] const host::SharedMemory* shared_host_memory(ContextId id) const {
    return nic_->context(id) == nullptr ? nullptr : &installed_[id.value].host;
  }
  [[nodiscard]] const Stages& stages() const { return stages_; }
  [[nodiscard]] uint64_t to_host_lost() const { return to_host_lost_; }
  // The number of frames that were not sent because the wire does not take their length.
  [[nodiscard]] uint64_t unsendable_frames() const { return unsendable_frames_; }
  // Returns "the payload handler of context 0" or the like, or "" if no handler runs. Any thread may call it, such as
  // one that finds that the owner's thread does not come back.
  [[nodiscard]] std::string running_handler() const;
  [[nodiscard]] uint64_t native_cycles() const { return native_cycles_; }  // cycles in native handlers without calls

 private:
  struct Installed {
    host::SharedMemory host;
    std::vector<uint64_t> windows;  // the offsets of its blocks of NIC memory
    bool fault_reported = false;
  };

  Card(const Options& options, PortPointer wire, PortPointer host);
  [[nodiscard]] Result<frames::ContextOptions> make_context(ContextId id, const ContextSetup& setup,
                                                            Installed& installed);
  [[nodiscard]] Result<spin::MemoryWindow> allocate_window(ContextId id, uint64_t bytes,
                                                           const std::vector<uint8_t>& content, Installed& installed);
  void free_windows(const Installed& installed);

  // card_turn.cpp
  [[nodiscard]] Status take_from_wire(bool& moved);
  [[nodiscard]] Status take_from_host(bool& moved);
  bool flush_wire();
  void flush_host();

  // card_perform.cpp
  void perform();
  void perform(const frames::StoreFrame& store);
  void perform(const frames::ToHost& frame);
  void perform(const frames::Transmit& transmit);
  void finish_egress(const frames::EgressFrame& frame, bool sent);
  void perform(const frames::DmaWrite& write);
  void perform(const frames::DebugLine& line);

  // card_handler.cpp
  void run_handlers();
  void run_handler(const spin::Her& her);
  void report_fault(const spin::Her& her, spin::HandlerEnd end);
  std::optional<uint32_t> call(const spin::HandlerCall& call) override;
  [[nodiscard]] bool work_while_handler_waits();

  Options options_;
  PortPointer wire_;
  PortPointer host_;
  std::shared_ptr<live::HandlerLibrary> library_;
  std::unique_ptr<frames::Nic> nic_;
  host::SharedMemory packet_memory_;
  host::SharedMemory nic_memory_;  // programs may map it
  spin::NicMemory windows_;
  std::vector<Installed> installed_;  // one for each context

  frames::Actions actions_;
  spin::Fifo<spin::Her> handlers_to_run_;  // handlers that are to run
  std::vector<Bytes> batch_;
  std::vector<frames::EgressFrame> egress_;  // frames for the wire
  std::vector<Bytes> egress_bytes_;  // the same frames
  std::vector<Bytes> to_host_;
  uint32_t host_frames_in_nic_ = 0;  // frames from the host's port that are not on the wire yet
  std::function<void()> host_callback_;
  std::vector<int> watched_;
  std::function<void(const frames::DebugLine&)> debug_;

  // These members belong to the handler that runs.
  spin::HerId running_;
  std::atomic<uint32_t> running_handler_ = 0;  // its context and kind; 0 if none runs
  std::optional<uint32_t> call_answer_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_;
  bool out_of_patience_ = false;

  std::vector<std::optional<bool>> initialised_;  // one for each context
  std::optional<Error> port_error_;  // an Error of a port
  uint64_t to_host_lost_ = 0;  // frames for the host that its port did not take
  uint64_t unsendable_frames_ = 0;
  uint64_t native_cycles_ = 0;
  Stages stages_;
};

}  // namespace spinloom::ethernet
