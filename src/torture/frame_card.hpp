// FrameCard - an Ethernet NIC of a run and its driver, in which everything takes a random time.
//
// Contract: actions that take time become items of one list, the others are performed at once. step() performs one of
//   the oldest items, at random. While a handler waits for the answer to a call, the rest of the world goes on, other
//   handlers too. As on PCIe and on a cable, accesses to host memory and frames for the wire are served in the order
//   asked for; the NIC hears of their ends at random times. The card reports to its owner all that happens, and all
//   that must not happen.
// Invariants: (1) the same seed and the same calls give the same run; (2) a frame of a handler leaves as it was when
//   the handler sent it, behind those sent before it, and handlers and the host take the turns that they should:
//   anything else is trouble.
// Threads: one owner. Time: none.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "nic/frames/nic.hpp"
#include "nic/spin/handler_runner.hpp"

namespace spinloom::torture {

using FrameBytes = std::vector<uint8_t>;
using FrameView = std::span<const uint8_t>;

class FrameCard {
 public:
  class Owner {
   public:
    virtual void on_to_host(FrameView frame, bool by_handler) = 0;
    virtual void on_transmitted(FrameView frame, bool by_handler, uint64_t token) = 0;
    virtual void on_started(const spin::Her& her) = 0;
    virtual void on_ended(const spin::Her& her) = 0;  // the handler's DMAs may still be under way
    virtual void on_initialised(spin::ContextId context, bool good) = 0;
    virtual void on_trouble(const std::string& what) = 0;
    // Called at times while a handler waits: everything outside the card may happen.
    virtual void on_handler_waits() = 0;

   protected:
    ~Owner() = default;
  };

  // `handlers` and `owner` outlive the card.
  static Result<std::unique_ptr<FrameCard>> make(const frames::Limits& limits, uint64_t seed,
                                                 spin::HandlerRunner& handlers, Owner& owner);

  [[nodiscard]] frames::Nic& nic() { return *nic_; }
  [[nodiscard]] std::span<uint8_t> nic_memory() { return nic_memory_; }

  void arrive(FrameBytes frame);
  // Returns false if the NIC has refused the frame.
  [[nodiscard]] bool send(FrameBytes frame, uint64_t token);
  [[nodiscard]] Status initialise(spin::ContextId context);
  [[nodiscard]] Status invoke(spin::ContextId context, uint32_t message);
  // Performs one item. Returns false if there is none, or if all are handlers and as many as may run are running.
  bool step();
  [[nodiscard]] uint64_t steps() const { return steps_; }

 private:
  class Calls;
  struct HandlerDone {
    spin::Her her;
    spin::HandlerOutcome outcome;
  };
  struct AccessDone {  // bytes of host memory that have been written or read
    spin::DmaId dma;
  };
  using HostAccess = std::variant<spin::DmaWrite, spin::DmaRead, spin::DmaAtomic>;
  struct FrameCopy {
    frames::StoreFrame action;
    std::shared_ptr<const FrameBytes> frame;
  };
  struct AccessTurn {};  // the turn of the oldest access to host memory
  struct Departure {};  // the departure of the oldest frame for the wire
  using Item = std::variant<FrameCopy, AccessTurn, AccessDone, Departure, frames::RunHandler, HandlerDone>;

  FrameCard(uint64_t seed, spin::HandlerRunner& handlers, Owner& owner)
      : runner_(handlers), owner_(owner), random_(seed, "card") {}
  [[nodiscard]] size_t departing_count(bool by_handlers) const;
  void begin_departure(const frames::EgressFrame& frame);
  void perform(frames::Actions& actions);
  void perform(const frames::Action& action);
  void act(const FrameCopy& store);
  void act(const AccessTurn&);
  void act(const AccessDone& moved);
  void act(const Departure&);
  void act(const frames::RunHandler& run);
  void act(const HandlerDone& done);

  spin::HandlerRunner& runner_;
  Owner& owner_;
  Random random_;
  std::unique_ptr<frames::Nic> nic_;
  std::vector<uint8_t> nic_memory_;
  std::vector<uint8_t> packet_memory_;
  std::deque<Item> items_;
  std::deque<HostAccess> host_accesses_;
  std::deque<frames::EgressFrame> departing_;
  std::deque<FrameBytes> handler_frames_;  // frames of handlers, with the bytes that they had when they were sent
  std::map<uint64_t, FrameBytes> host_frames_;  // frames of the host that have not left, by token
  std::map<uint32_t, Calls*> waiting_handlers_;  // handlers that wait for the answer to a call, by HER
  std::shared_ptr<const FrameBytes> current_frame_;  // the frame that the engine looks at
  bool last_was_handler_ = true;  // the newest frame for the wire is a handler's
  uint32_t running_handlers_ = 0;  // handlers under way
  uint64_t steps_ = 0;
};

}  // namespace spinloom::torture
