#include "portals/collective/meeting.hpp"

#include <tuple>

#include "portals/collective/message_bits.hpp"

namespace spinloom::collective {
namespace {

constexpr uint32_t answers_max = 8;  // two are under way at most
constexpr uint64_t question = UINT64_MAX;  // the user pointer of a question; a round's message has the round's number

}  // namespace

Result<Meeting> Meeting::begin(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks, uint32_t number,
                               std::function<void()> spend_call_time) {
  Meeting meeting(interface, portal, ranks, number, std::move(spend_call_time));
  Status begun;
  if (auto queue = interface.eq_alloc(answers_max)) {
    meeting.answer_queue_ = *queue;
  } else {
    begun = queue.error();
  }
  for (uint32_t round = 0; uint64_t{1} << round < ranks && begun; ++round) begun = meeting.append_entry(round);
  if (begun) return meeting;
  meeting.end();
  return begun.error();
}

uint64_t Meeting::bits_of(uint32_t round) const { return bits::meeting | uint64_t{number_} << 8 | round; }

Status Meeting::append_entry(uint32_t round) {
  SPL_ASSIGN(const nic::CounterId heard, interface_->ct_alloc());
  heard_counters_.push_back(heard);
  nic::Entry entry;
  entry.match_rank = {(interface_->rank().value + ranks_ - (uint32_t{1} << round)) % ranks_};
  entry.match_bits = bits_of(round);
  entry.counter = heard;
  entry.options.use_once = true;
  entry.options.ct_comm = true;
  entry.options.event_comm_disable = true;
  entry.options.event_unlink_disable = true;
  if (spend_call_time_) spend_call_time_();
  SPL_ASSIGN(const nic::EntryId entry_id, interface_->me_append(portal_, entry));
  entries_.push_back(entry_id);
  return {};
}

Status Meeting::put(uint32_t rank, uint64_t bits) {
  nic::Put put;
  put.target = {rank};
  put.portal = portal_;
  put.match_bits = bits;
  put.ack_request = nic::AckRequest::ack;
  put.queue = answer_queue_;
  put.event_send_disable = true;
  put.user_ptr = bits == bits::fence ? question : round_;
  if (spend_call_time_) spend_call_time_();
  return interface_->put(put);
}

Status Meeting::send_message(uint32_t round) {
  is_sent_ = true;
  return put((interface_->rank().value + (uint32_t{1} << round)) % ranks_, bits_of(round));
}

// The answer to a question says no more than that its target is there.
Status Meeting::ask_next_rank() {
  asked_distance_ = asked_distance_ % (ranks_ - 1) + 1;
  is_asking_ = true;
  return put((interface_->rank().value + asked_distance_) % ranks_, bits::fence);
}

// True if a message of `rank` is still to come.
bool Meeting::waits_for(uint32_t rank) const {
  for (uint32_t round = round_; round < rounds(); ++round) {
    const uint32_t source = (interface_->rank().value + ranks_ - (uint32_t{1} << round)) % ranks_;
    if (source == rank && interface_->ct_get(heard_counters_[round]).success == 0) return true;
  }
  return false;
}

Error Meeting::error_of_gone(uint32_t rank) {
  return fail(Code::fault, "rank ", rank, " is gone, and all ranks open their engines together");
}

Status Meeting::take_answers() {
  while (const std::optional<nic::Event> event = interface_->eq_get(answer_queue_)) {
    const bool is_question = event->user_ptr == question;
    const uint32_t distance = is_question ? asked_distance_ : uint32_t{1} << event->user_ptr;
    const uint32_t rank = (interface_->rank().value + distance) % ranks_;
    // A rank that is through has sent all its messages, and may leave while others still look for their answers. So a
    // lost question is an Error only if a message of its target is still to come.
    if (event->fail == nic::Fail::undeliverable && (!is_question || waits_for(rank))) return error_of_gone(rank);
    if (is_question) {
      is_asking_ = false;
    } else if (event->fail == nic::Fail::ok && !event->in_overflow) {
      is_acknowledged_ = true;
    } else {
      is_sent_ = false;
    }
  }
  return {};
}

Result<bool> Meeting::step() {
  SPL_TRY(take_answers());
  while (round_ < rounds()) {
    if (is_acknowledged_ && interface_->ct_get(heard_counters_[round_]).success > 0) {
      ++round_;
      is_sent_ = is_acknowledged_ = false;
      idle_steps_ = 0;
      continue;
    }
    if (!is_sent_ && !is_acknowledged_) SPL_TRY(send_message(round_));
    constexpr uint32_t patience_steps = 8;
    if (++idle_steps_ > patience_steps && !is_asking_) SPL_TRY(ask_next_rank());
    return false;
  }
  return true;
}

void Meeting::end() {
  for (const nic::EntryId entry : entries_) std::ignore = interface_->me_unlink(entry);
  for (const nic::CounterId heard : heard_counters_) std::ignore = interface_->ct_free(heard);
  if (answer_queue_.exists()) std::ignore = interface_->eq_free(answer_queue_);
  entries_.clear();
  heard_counters_.clear();
  answer_queue_ = {};
}

}  // namespace spinloom::collective
