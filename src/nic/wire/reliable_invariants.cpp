// Checks of what reliable_impl.hpp calls invariants, for tests.
#include <map>

#include "nic/wire/reliable_impl.hpp"

namespace spinloom::wire {

void Reliable::check_invariants() const {
  for (const Peer* const peer : impl_->peers_in_order) Impl::check_invariants(*peer);
}

void Reliable::Impl::check_invariants(const Peer& peer) {
  const nic::Rank rank = peer.rank;
  const size_t waiting = peer.waiting_requests.size() + peer.waiting_answers.size();
  SPL_ASSERT(!peer.lost || (peer.in_flight.empty() && waiting == 0 && peer.open_messages.empty()), "rank ", rank,
             " is lost, and ", peer.in_flight.size() + waiting, " segments to it are kept");

  uint32_t sequence = peer.next_sequence - static_cast<uint32_t>(peer.in_flight.size());
  uint32_t outstanding = 0;
  uint32_t lost = 0;
  for (const Segment& segment : peer.in_flight) {
    SPL_ASSERT((segment.flags & slmp::syn) != 0 && segment.sequence == sequence, "rank ", rank, ": segment ",
               segment.sequence, " is where ", sequence, " should be");
    ++sequence;
    outstanding += !segment.acked && !segment.lost ? 1 : 0;
    lost += segment.lost ? 1 : 0;
  }
  SPL_ASSERT(peer.in_flight.empty() || !peer.in_flight.front().acked, "rank ", rank,
             ": the oldest segment is acknowledged and is still kept");
  SPL_ASSERT(outstanding == peer.outstanding && lost == peer.lost_segments, "rank ", rank, ": ", outstanding,
             " segments are under way and ", lost, " lost, and ", peer.outstanding, " and ", peer.lost_segments,
             " are counted");

  const uint32_t ahead = peer.received_ahead.size();
  SPL_ASSERT(!peer.received_ahead.contains(peer.expected_sequence) && ahead == peer.ahead_count, "rank ", rank, ": ",
             ahead, " segments have come ahead of ", peer.expected_sequence, ", and ", peer.ahead_count,
             " are counted");
  SPL_ASSERT(!peer.early_headers.contains(peer.expected_message_id), "rank ", rank, ": the header of message ",
             peer.expected_message_id, " is kept and is the next");

  std::map<uint64_t, uint32_t> of_messages;  // segments that refer to the sender's memory
  std::map<uint64_t, uint32_t> of_tickets;
  for (const auto* const queue : {&peer.in_flight, &peer.waiting_requests, &peer.waiting_answers}) {
    for (const Segment& segment : *queue) {
      if (segment.is_by_reference) {
        ++(segment.ticket == 0 ? of_messages[segment.packet.message] : of_tickets[segment.ticket]);
      }
    }
  }
  for (const auto& [name, message] : peer.open_messages) {
    const auto found = of_messages.find(name);
    const uint32_t unreleased = found == of_messages.end() ? 0 : found->second;
    SPL_ASSERT(message.unreleased == unreleased, "message ", name, ": ", unreleased, " segments refer to it, and ",
               message.unreleased, " are counted");
    SPL_ASSERT(!message.has_last_packet || unreleased > 0, "message ", name, " is free and was not told");
    if (found != of_messages.end()) of_messages.erase(found);
  }
  SPL_ASSERT(of_messages.empty(), "message ", of_messages.begin()->first, " is read and counts as free");
  for (const auto& [ticket, references] : peer.ticket_references) {
    SPL_ASSERT(of_tickets[ticket] == references, "ticket ", ticket, ": ", of_tickets[ticket],
               " segments refer to it, and ", references, " are counted");
  }
}

}  // namespace spinloom::wire
