// Trace - records when the units of one simulated NIC were busy, as spans of virtual time.
//
// Contract: units call span() when service is decided, with its beginning and its end. A unit without a trace
//   records nothing.
// Invariants: (1) at most limits::trace_spans_max spans are kept, the first ones; later ones are counted
//   in dropped(); (2) recording changes no modelled number.
// Threads: one owner. Time: virtual.
#pragma once

#include <cstdint>
#include <vector>

#include "base/limits.hpp"
#include "base/units.hpp"

namespace spinloom::simulated {

enum class Track : uint8_t {
  wire,           // a packet's first to last byte at the NIC; number: the packet's offset in the message
  parser,         // parser and matching unit; number: as wire
  packet_buffer,  // copy of a packet into NIC memory; number: the handler execution request (HER)
  scheduler,      // the time from the copy until the scheduler may pick a HER; number: HER
  header,         // a header handler; lane: HPU, number: HER
  payload,        // a payload handler; lane: HPU, number: HER
  completion,     // a completion handler; lane: HPU, number: HER
  call,           // a handler's call until it is answered; lane: HPU, number: SPL_CALL_... of spinloom/hpu_map.h
  dma,            // a DMA write until its last byte has left the NIC, or a read until it is there; number: bytes
  pcie,           // the time that the link is busy with a DMA write; number: bytes
  event,          // an event on PCIe until the host can read it
  host_work,      // the host's processor; number: blocks
};

[[nodiscard]] constexpr const char* name_of(Track track) {
  switch (track) {
    case Track::wire: return "wire";
    case Track::parser: return "parser";
    case Track::packet_buffer: return "packet buffer";
    case Track::scheduler: return "scheduler";
    case Track::header: return "header handler";
    case Track::payload: return "payload handler";
    case Track::completion: return "completion handler";
    case Track::call: return "call";
    case Track::dma: return "DMA";
    case Track::pcie: return "PCIe";
    case Track::event: return "event";
    case Track::host_work: return "host work";
  }
  return "unknown";
}

struct Span {
  Track track = Track::wire;
  uint32_t lane = 0;
  uint64_t number = 0;
  Time start;
  Time end;
};

class Trace {
 public:
  void span(const Span& span) {
    if (spans_.size() < limits::trace_spans_max) {
      spans_.push_back(span);
    } else {
      ++dropped_;
    }
  }
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

 private:
  std::vector<Span> spans_;
  uint64_t dropped_ = 0;
};

}  // namespace spinloom::simulated
