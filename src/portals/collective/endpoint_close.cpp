// The end of an Endpoint: what is under way comes to its end, and nothing of it is left on the NIC.
#include <tuple>
#include <utility>

#include "portals/collective/endpoint.hpp"
#include "portals/collective/message_bits.hpp"

namespace spinloom::collective {

// Messages between two ranks come in their order: when the answer to one is here, those before it have come. A rank
// that is gone, or has no entry any more, answers too, by its NIC or by the loss of it.
void Endpoint::flush() {
  const Result<nic::CounterId> answers = interface_.ct_alloc();
  if (!answers) return;
  uint64_t asked = 0;
  for (const uint32_t rank : std::exchange(sent_to_, {})) {
    nic::Put fence;
    fence.target = {rank};
    fence.portal = portal_;
    fence.match_bits = bits::fence;
    fence.ack_request = nic::AckRequest::ct_ack;
    fence.counter = *answers;
    spend_call_time();
    if (interface_.put(fence)) ++asked;
  }
  // A rank that does not answer within `patience` has stopped, and its NIC still keeps the order.
  std::ignore = wait_for("ranks have not taken messages", [&] {
    const nic::CounterValue value = interface_.ct_get(*answers);
    return value.success + value.failure >= asked;
  });
  std::ignore = interface_.ct_free(*answers);
}

Status Endpoint::close() {
  if (!schedules_by_number_.empty()) {
    return fail(Code::invalid, schedules_by_number_.size(), " schedules of this engine exist; free them first");
  }
  const Status ended = progress();
  if (portal_.exists()) {
    flush();
    // From here on nothing comes, and what has come has landed; so no entry is in use, but for messages that wait in
    // the overflow list for a receive.
    std::ignore = interface_.pt_disable(portal_);
    nic::Entry all;
    all.ignore_bits = ~uint64_t{0};
    all.options.event_over_disable = true;
    std::ignore = interface_.me_search(portal_, all, true);
    std::ignore = progress();
  }
  for (const auto& [number, entry] : linked_blocks_) std::ignore = interface_.me_unlink(entry);
  linked_blocks_.clear();
  if (self_entry_.exists()) std::ignore = interface_.me_unlink(self_entry_);
  if (notice_entry_.exists()) std::ignore = interface_.me_unlink(notice_entry_);
  if (drop_entry_.exists()) std::ignore = interface_.me_unlink(drop_entry_);
  if (drop_all_entry_.exists()) std::ignore = interface_.me_unlink(drop_all_entry_);
  for (const Counter& counter : idle_counters_) std::ignore = interface_.ct_free(counter.id);
  idle_counters_.clear();
  for (const auto& [member, peer] : peers_) {
    if (peer.credit_entry.exists()) std::ignore = interface_.me_unlink(peer.credit_entry);
    if (peer.credit_counter.exists()) std::ignore = interface_.ct_free(peer.credit_counter);
  }
  peers_.clear();
  Status freed;
  if (portal_.exists()) freed = interface_.pt_free(portal_);
  if (queue_.exists()) std::ignore = interface_.eq_free(queue_);
  self_entry_ = {};
  notice_entry_ = {};
  drop_entry_ = {};
  drop_all_entry_ = {};
  portal_ = {};
  queue_ = {};
  return ended ? freed : ended;
}

}  // namespace spinloom::collective
