// Messages that wait in their sender's memory: to which receivers one may be offered, how long a rank waits for them,
// and what it does meanwhile.
#include <algorithm>

#include "mpi/abi/exchange.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

namespace {

// Keeps a flag set as long as it lives.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  ~Flag() { flag_ = false; }

 private:
  bool& flag_;
};

}  // namespace

bool Layer::may_offer_to(uint32_t receiver) {
  Patience& patience = patience_[receiver];
  if (patience.skipped_messages == 0) return true;
  --patience.skipped_messages;
  return false;
}

void Layer::add_offer(std::unique_ptr<OfferedSend> send) {
  const Lock lock;
  offered_sends.push_back(std::move(send));
  count_work();
}

void Layer::add_ongoing(OngoingCall call) {
  const Lock lock;
  ongoing_calls.push_back(std::make_unique<OngoingCall>(std::move(call)));
  count_work();
}

void Layer::count_work() { work_count_.store(offered_sends.size() + ongoing_calls.size(), std::memory_order_relaxed); }

bool Layer::is_open(uint64_t serial) {
  const Lock lock;
  return std::ranges::any_of(offered_sends, [serial](const auto& each) { return each->pending.serial == serial; });
}

bool Layer::cancel_offer(Request request) {
  const Lock lock;
  for (const auto& send : offered_sends) {
    if (!send->has_program_request || send->program_request != request) continue;
    if (!may_cancel_sends || send->record_request == handles().request_null || send->is_cancelling) return true;
    send->is_cancelling = real.Cancel(&send->record_request) == success;
    return true;
  }
  return false;
}

// Takes an offer back if the MPI has cancelled its record: no receiver has seen it, and its slot is free again.
void Layer::look_at_cancelled(OfferedSend& send) {
  int flag = 0;
  int cancelled = 0;
  Status status{};
  if (real.Test(&send.record_request, &flag, &status) != success || flag == 0) return;
  send.record_request = handles().request_null;
  if (real.Test_cancelled(&status, &cancelled) != success || cancelled == 0) return;
  pipeline.abandon(send.pending);
  cancelled_offers.add(send.pending.serial);
  send.is_moved = true;
}

bool Layer::is_over(OfferedSend& send) {
  if (send.is_cancelling && send.record_request != handles().request_null) look_at_cancelled(send);
  if (!send.is_moved) return false;
  if (send.record_request == handles().request_null) return true;
  int flag = 0;
  return real.Test(&send.record_request, &flag, status_ignore) != success || flag != 0;
}

// Looks at an offered message: the receiver may have taken it, or handed it back. If this rank waits, it helps to copy,
// and packs the message after all when it has waited long enough.
void Layer::settle(OfferedSend& send, Waiting waiting) {
  if (send.is_moved) return;
  Patience& patience = patience_[send.pending.receiver];
  if (CopyPipeline::is_done(send.pending)) {
    send.is_moved = true;
    patience = {};
    return;
  }
  if (CopyPipeline::is_returned(send.pending)) {
    pack_after_all(send);
    return;
  }
  if (waiting == Waiting::no) return;
  if (waiting == Waiting::blocked) pipeline.help(send.pending, {*send.place.form, send.place.count, send.place.buffer});
  const int64_t now = now_ns();
  if (send.wait_begun_ns < 0) send.wait_begun_ns = now;
  constexpr int64_t asks_for_one_wait = 32;
  const int64_t patience_ns = send.patience_ns * (waiting == Waiting::asks ? asks_for_one_wait : 1);
  if (now - send.wait_begun_ns < patience_ns || !CopyPipeline::withdraw(send.pending)) return;
  pack_after_all(send);
}

void Layer::pack_after_all(OfferedSend& send) {
  Patience& patience = patience_[send.pending.receiver];
  send.is_moved = true;
  if (!fill_bounced(send)) {
    CopyPipeline::give_up(send.pending);
    return;
  }
  pipeline.load(send.pending, {*send.place.form, send.place.count, send.place.buffer});
  pipeline.count_withdrawn();
  if (TypeTally* const type_tally = send.place.form->tally)
    type_tally->withdraw(send.place.count, send.pending.receiver);
  constexpr uint32_t waits_in_vain_max = 6;
  patience.waits_in_vain = std::min(patience.waits_in_vain + 1, waits_in_vain_max);
  patience.skipped_messages = 1U << patience.waits_in_vain;
}

// Packs the offers that their receivers could not read. A rank calls this while it waits in a receive, because its
// sender may wait for it in the same way.
void Layer::take_returned() {
  const Lock lock;
  for (const auto& send : offered_sends) {
    if (!send->is_moved && CopyPipeline::is_returned(send->pending)) pack_after_all(*send);
  }
}

// Messages that have arrived are put in place before others are helped to take what this rank has sent.
void Layer::progress(Waiting waiting) {
  const Lock lock;
  if (is_progressing_) return;
  const Flag progressing(is_progressing_);
  if (waiting != Waiting::no) look_at_receives();
  for (size_t i = 0; i < offered_sends.size();) {
    settle(*offered_sends[i], waiting);
    if (!is_over(*offered_sends[i])) {
      ++i;
      continue;
    }
    if (offered_sends[i]->has_program_request) real.Grequest_complete(offered_sends[i]->program_request);
    offered_sends.erase(offered_sends.begin() + static_cast<ptrdiff_t>(i));
  }
  progress_calls();
  count_work();
}

void Layer::progress_calls() {
  for (size_t i = 0; i < ongoing_calls.size();) {
    OngoingCall& call = *ongoing_calls[i];
    if (!call.carried->test(*call.code)) {
      ++i;
      continue;
    }
    real.Grequest_complete(call.program_request);
    ongoing_calls.erase(ongoing_calls.begin() + static_cast<ptrdiff_t>(i));
  }
}

int Layer::wait(Request* request) {
  while (has_work()) {
    progress(Waiting::blocked);
    int flag = 0;
    const int code = real.Test(request, &flag, status_ignore);
    if (code != success || flag != 0) return code;
  }
  return real.Wait(request, status_ignore);
}

bool Layer::may_look_at(const TrackedRequest& tracked) {
  return tracked.is_receive && tracked.is_active && !tracked.was_looked_at && tracked.landed_bytes < 0 &&
         !tracked.claim && !tracked.is_substituted && !tracked.is_cancelling &&
         (looks_leave_persistent || !tracked.is_persistent);
}

// Puts the message of a record that has arrived in place, while the program waits for something else. Other messages,
// and those that are too long, are left to the request's completion.
void Layer::look_at(TrackedRequest& tracked) {
  int flag = 0;
  Status status{};
  if (!may_look_at(tracked)) return;
  if (real.Request_get_status(tracked.handle, &flag, &status) != success || flag == 0) return;
  tracked.was_looked_at = true;
  const auto record = record_in(tracked.place, status);
  if (!record || static_cast<int64_t>(record->bytes) > tracked.place.capacity()) return;
  if (land(*record, tracked.place, &status) == success) tracked.landed_bytes = static_cast<int64_t>(record->bytes);
}

void Layer::look_at_receives() {
  arriving_.clear();
  tracked_requests.for_each([this](uint64_t, TrackedRequest* tracked) {
    if (may_look_at(*tracked)) arriving_.push_back(tracked);
  });
  for (TrackedRequest* const tracked : arriving_) look_at(*tracked);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
