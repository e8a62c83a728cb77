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
  if (patience.left_out == 0) return true;
  --patience.left_out;
  return false;
}

void Layer::add_offer(std::unique_ptr<Offered> one) {
  const Lock lock;
  offered.push_back(std::move(one));
  count_offers();
}

void Layer::add_underway(Underway one) {
  const Lock lock;
  underway.push_back(std::make_unique<Underway>(std::move(one)));
  count_offers();
}

void Layer::count_offers() { offers_.store(offered.size() + underway.size(), std::memory_order_relaxed); }

bool Layer::is_open(uint64_t serial) {
  const Lock lock;
  return std::ranges::any_of(offered, [serial](const auto& each) { return each->pending.serial == serial; });
}

bool Layer::cancel_offer(Request request) {
  const Lock lock;
  for (const auto& one : offered) {
    if (!one->has_whole || one->whole != request) continue;
    if (!may_cancel_sends || one->record == handles().request_null || one->cancels) return true;
    one->cancels = real.Cancel(&one->record) == success;
    return true;
  }
  return false;
}

// Takes an offer back if the MPI has cancelled its record: no receiver has seen it, and its slot is free again.
void Layer::look_at_cancelled(Offered& one) {
  int flag = 0;
  int cancelled = 0;
  Status status{};
  if (real.Test(&one.record, &flag, &status) != success || flag == 0) return;
  one.record = handles().request_null;
  if (real.Test_cancelled(&status, &cancelled) != success || cancelled == 0) return;
  pipeline.abandon(one.pending);
  cancelled_offers.add(one.pending.serial);
  one.moved = true;
}

bool Layer::is_over(Offered& one) {
  if (one.cancels && one.record != handles().request_null) look_at_cancelled(one);
  if (!one.moved) return false;
  if (one.record == handles().request_null) return true;
  int flag = 0;
  return real.Test(&one.record, &flag, status_ignore) != success || flag != 0;
}

// Looks at an offered message: the receiver may have taken it, or handed it back. If this rank waits, it helps to copy,
// and packs the message after all when it has waited long enough.
void Layer::settle(Offered& one, Waiting waiting) {
  if (one.moved) return;
  Patience& patience = patience_[one.pending.receiver];
  if (CopyPipeline::is_done(one.pending)) {
    one.moved = true;
    patience = {};
    return;
  }
  if (CopyPipeline::is_returned(one.pending)) {
    pack_after_all(one);
    return;
  }
  if (waiting == Waiting::no) return;
  if (waiting == Waiting::blocked) pipeline.help(one.pending, {*one.place.form, one.place.count, one.place.buffer});
  const int64_t now = now_ns();
  if (one.begun_ns < 0) one.begun_ns = now;
  constexpr int64_t asks_for_one_wait = 32;
  const int64_t patience_ns = one.patience_ns * (waiting == Waiting::asks ? asks_for_one_wait : 1);
  if (now - one.begun_ns < patience_ns || !CopyPipeline::withdraw(one.pending)) return;
  pack_after_all(one);
}

void Layer::pack_after_all(Offered& one) {
  Patience& patience = patience_[one.pending.receiver];
  one.moved = true;
  if (!fill_bounced(one)) {
    CopyPipeline::give_up(one.pending);
    return;
  }
  pipeline.load(one.pending, {*one.place.form, one.place.count, one.place.buffer});
  pipeline.count_withdrawn();
  if (TypeTally* const told = one.place.form->tally) told->withdraw(one.place.count, one.pending.receiver);
  constexpr uint32_t in_vain_most = 6;
  patience.in_vain = std::min(patience.in_vain + 1, in_vain_most);
  patience.left_out = 1U << patience.in_vain;
}

// Packs the offers that their receivers could not read. A rank calls this while it waits in a receive, because its
// sender may wait for it in the same way.
void Layer::take_returned() {
  const Lock lock;
  for (const auto& one : offered) {
    if (!one->moved && CopyPipeline::is_returned(one->pending)) pack_after_all(*one);
  }
}

// Messages that have arrived are put in place before others are helped to take what this rank has sent.
void Layer::progress(Waiting waiting) {
  const Lock lock;
  if (progresses_) return;
  const Flag within(progresses_);
  if (waiting != Waiting::no) look_at_receives();
  for (size_t i = 0; i < offered.size();) {
    settle(*offered[i], waiting);
    if (!is_over(*offered[i])) {
      ++i;
      continue;
    }
    if (offered[i]->has_whole) real.Grequest_complete(offered[i]->whole);
    offered.erase(offered.begin() + static_cast<ptrdiff_t>(i));
  }
  progress_calls();
  count_offers();
}

void Layer::progress_calls() {
  for (size_t i = 0; i < underway.size();) {
    Underway& one = *underway[i];
    if (!one.carried->test(*one.code)) {
      ++i;
      continue;
    }
    real.Grequest_complete(one.whole);
    underway.erase(underway.begin() + static_cast<ptrdiff_t>(i));
  }
}

int Layer::wait(Request* request) {
  while (offers()) {
    progress(Waiting::blocked);
    int flag = 0;
    const int code = real.Test(request, &flag, status_ignore);
    if (code != success || flag != 0) return code;
  }
  return real.Wait(request, status_ignore);
}

bool Layer::may_look_at(const Open& known) {
  return known.receives && known.active && !known.looked && known.landed < 0 && !known.claim && !known.substituted &&
         !known.cancelled && (looks_leave_persistent || !known.persistent);
}

// Puts the message of a record that has arrived in place, while the program waits for something else. Other messages,
// and those that are too long, are left to the request's completion.
void Layer::look_at(Open& known) {
  int flag = 0;
  Status status{};
  if (!may_look_at(known)) return;
  if (real.Request_get_status(known.handle, &flag, &status) != success || flag == 0) return;
  known.looked = true;
  const auto record = record_in(known.place, status);
  if (!record || static_cast<int64_t>(record->bytes) > known.place.capacity()) return;
  if (land(*record, known.place, &status) == success) known.landed = static_cast<int64_t>(record->bytes);
}

void Layer::look_at_receives() {
  arriving_.clear();
  open.for_each([this](uint64_t, Open* known) {
    if (may_look_at(*known)) arriving_.push_back(known);
  });
  for (Open* const known : arriving_) look_at(*known);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
