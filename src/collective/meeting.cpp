#include "collective/meeting.hpp"

#include "collective/message_bits.hpp"

namespace spinloom::collective {

Result<Meeting> Meeting::begin(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks,
                               std::function<void()> call) {
  Meeting made(interface, portal, ranks, std::move(call));
  SPL_ASSIGN(made.heard_, interface.ct_alloc());
  SPL_ASSIGN(made.told_, interface.ct_alloc());
  if (ranks > 1) SPL_TRY(made.open_round());
  return made;
}

Status Meeting::open_round() {
  const uint32_t distance = uint32_t{1} << round_;
  nic::Entry entry;
  entry.match_rank = {(interface_->rank().value + ranks_ - distance % ranks_) % ranks_};
  entry.match_bits = bits::meeting | round_;
  entry.counter = heard_;
  entry.options.use_once = true;
  entry.options.ct_comm = true;
  entry.options.ct_overflow = true;
  entry.options.event_comm_disable = true;
  entry.options.event_over_disable = true;
  entry.options.event_unlink_disable = true;
  if (call_) call_();
  SPL_TRY(interface_->me_append(portal_, entry));
  return tell();
}

Status Meeting::tell() {
  nic::Put put;
  put.target = {(interface_->rank().value + (uint32_t{1} << round_)) % ranks_};
  put.portal = portal_;
  put.match_bits = bits::meeting | round_;
  put.ack_request = nic::AckRequest::ct_ack;
  put.counter = told_;
  if (call_) call_();
  return interface_->put(put);
}

Result<bool> Meeting::step() {
  while (uint64_t{1} << round_ < ranks_) {
    const nic::CounterValue told = interface_->ct_get(told_);
    if (told.failure > refused_) {
      refused_ = told.failure;
      SPL_TRY(tell());
      return false;
    }
    if (told.success <= round_ || interface_->ct_get(heard_).success <= round_) return false;
    ++round_;
    if (uint64_t{1} << round_ < ranks_) SPL_TRY(open_round());
  }
  return true;
}

Status Meeting::end() {
  SPL_TRY(interface_->ct_free(heard_));
  return interface_->ct_free(told_);
}

}  // namespace spinloom::collective
