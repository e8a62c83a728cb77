// Writes through a scatter list: they wait, in order, while the NIC reads the next elements of the list.
#include <algorithm>

#include "simulated/node/node.hpp"
#include "simulated/node/node_codes.hpp"

namespace spinloom::simulated {

// Queues a write through a scatter list; serves it at once if nothing delays it.
void Node::queue_scattered(uint32_t slot, Time here) {
  const bool waits = iovec_reading_ || dmas_[slot].scatter == nic::Scatter::refill;
  if (!waits) return serve_dma(slot, here);
  scattered_.push_back({slot, here});
  if (!iovec_reading_) read_iovec();
}

// Starts the read when the write that needs the elements is there, and all writes before it are on their way.
void Node::read_iovec() {
  iovec_reading_ = true;
  const Time start = std::max(events_.now(), scattered_.front().here);
  ++statistics_.iovec_refills;
  events_.at(start + profile_.iovec.refill, *this, iovec_refilled, 0);
}

void Node::take_scattered() {
  iovec_reading_ = false;
  bool first = true;  // the first write has its element now
  while (!scattered_.empty()) {
    const Scattered next = scattered_.front();
    if (!first && dmas_[next.slot].scatter == nic::Scatter::refill) return read_iovec();
    scattered_.pop_front();
    serve_dma(next.slot, std::max(events_.now(), next.here));
    first = false;
  }
}

}  // namespace spinloom::simulated
