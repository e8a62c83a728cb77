#include "portals/collective/meeting.hpp"

#include <tuple>

#include "portals/collective/message_bits.hpp"

namespace spinloom::collective {
namespace {

constexpr uint32_t answers_most = 8;  // two are under way at most
constexpr uint64_t question = UINT64_MAX;  // the user pointer of a question; a round's message has the round's number

}  // namespace

Result<Meeting> Meeting::begin(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks, uint32_t number,
                               std::function<void()> call) {
  Meeting made(interface, portal, ranks, number, std::move(call));
  Status begun;
  if (auto queue = interface.eq_alloc(answers_most)) {
    made.answers_ = *queue;
  } else {
    begun = queue.error();
  }
  for (uint32_t round = 0; uint64_t{1} << round < ranks && begun; ++round) begun = made.expect(round);
  if (begun) return made;
  made.end();
  return begun.error();
}

uint64_t Meeting::bits_of(uint32_t round) const { return bits::meeting | uint64_t{number_} << 8 | round; }

Status Meeting::expect(uint32_t round) {
  SPL_ASSIGN(const nic::CounterId heard, interface_->ct_alloc());
  heard_.push_back(heard);
  nic::Entry entry;
  entry.match_rank = {(interface_->rank().value + ranks_ - (uint32_t{1} << round)) % ranks_};
  entry.match_bits = bits_of(round);
  entry.counter = heard;
  entry.options.use_once = true;
  entry.options.ct_comm = true;
  entry.options.event_comm_disable = true;
  entry.options.event_unlink_disable = true;
  if (call_) call_();
  SPL_ASSIGN(const nic::EntryId linked, interface_->me_append(portal_, entry));
  entries_.push_back(linked);
  return {};
}

Status Meeting::put(uint32_t rank, uint64_t bits) {
  nic::Put put;
  put.target = {rank};
  put.portal = portal_;
  put.match_bits = bits;
  put.ack_request = nic::AckRequest::ack;
  put.queue = answers_;
  put.event_send_disable = true;
  put.user_ptr = bits == bits::fence ? question : round_;
  if (call_) call_();
  return interface_->put(put);
}

Status Meeting::say(uint32_t round) {
  said_ = true;
  return put((interface_->rank().value + (uint32_t{1} << round)) % ranks_, bits_of(round));
}

// The answer to a question says no more than that its target is there.
Status Meeting::ask_the_next() {
  asked_ = asked_ % (ranks_ - 1) + 1;
  asks_ = true;
  return put((interface_->rank().value + asked_) % ranks_, bits::fence);
}

// True if a message of `rank` is still to come.
bool Meeting::waits_for(uint32_t rank) const {
  for (uint32_t round = round_; round < rounds(); ++round) {
    const uint32_t source = (interface_->rank().value + ranks_ - (uint32_t{1} << round)) % ranks_;
    if (source == rank && interface_->ct_get(heard_[round]).success == 0) return true;
  }
  return false;
}

Error Meeting::gone(uint32_t rank) {
  return fail(Code::fault, "rank ", rank, " is gone, and all ranks open their engines together");
}

Status Meeting::take_answers() {
  while (const std::optional<nic::Event> event = interface_->eq_get(answers_)) {
    const bool is_question = event->user_ptr == question;
    const uint32_t distance = is_question ? asked_ : uint32_t{1} << event->user_ptr;
    const uint32_t rank = (interface_->rank().value + distance) % ranks_;
    // A rank that is through has sent all its messages, and may leave while others still look for their answers. So a
    // lost question is an Error only if a message of its target is still to come.
    if (event->fail == nic::Fail::undeliverable && (!is_question || waits_for(rank))) return gone(rank);
    if (is_question) {
      asks_ = false;
    } else if (event->fail == nic::Fail::ok && !event->in_overflow) {
      is_told_ = true;
    } else {
      said_ = false;
    }
  }
  return {};
}

Result<bool> Meeting::step() {
  SPL_TRY(take_answers());
  while (round_ < rounds()) {
    if (is_told_ && interface_->ct_get(heard_[round_]).success > 0) {
      ++round_;
      said_ = is_told_ = false;
      idle_ = 0;
      continue;
    }
    if (!said_ && !is_told_) SPL_TRY(say(round_));
    constexpr uint32_t patience = 8;
    if (++idle_ > patience && !asks_) SPL_TRY(ask_the_next());
    return false;
  }
  return true;
}

void Meeting::end() {
  for (const nic::EntryId entry : entries_) std::ignore = interface_->me_unlink(entry);
  for (const nic::CounterId heard : heard_) std::ignore = interface_->ct_free(heard);
  if (answers_.exists()) std::ignore = interface_->eq_free(answers_);
  entries_.clear();
  heard_.clear();
  answers_ = {};
}

}  // namespace spinloom::collective
