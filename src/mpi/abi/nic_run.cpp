#include "mpi/abi/nic_run.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace spinloom::mpi::SPINLOOM_ABI {

NicRun::Move NicRun::move_of(const Place& place, uint8_t* at) {
  Move made{place, at, nullptr};
  if (place.form->known) return made;
  made.kept = std::make_unique<KeptType>();
  made.kept->is_held = real.Type_dup(place.type, &made.kept->type) == success;
  if (made.kept->is_held) made.place.type = made.kept->type;
  return made;
}

bool NicRun::try_start(int& code) {
  team_->advance();
  if (!schedule_->may_start(turn_)) return false;
  std::ranges::fill(cleared_, uint8_t{0});
  for (const Move& one : before_) {
    const Form& form = *one.place.form;
    if (form.known) {
      Message(form, one.place.count, one.place.buffer).pack({0, one.place.capacity()}, one.at);
      continue;
    }
    std::vector<uint8_t> bytes;
    if (!layer.copy(one.place, bytes)) code = error_other;
    std::memcpy(one.at, bytes.data(), bytes.size());
  }
  begun_ = schedule_->start();
  if (begun_ == NicSchedule::Begun::failed) code = error_other;
  return begun_ != NicSchedule::Begun::no_room;
}

int NicRun::begin() {
  const Lock lock;  // persistent calls are started without it
  turn_ = schedule_->take_turn();
  begun_ = NicSchedule::Begun::no_room;
  failed_ = success;
  (void)try_start(failed_);
  return success;  // the request reports a failure: the other ranks are in the call
}

bool NicRun::test(int& code) {
  const Lock lock;
  code = success;
  if (begun_ == NicSchedule::Begun::no_room && !try_start(failed_)) return false;
  if (begun_ == NicSchedule::Begun::yes) {  // after a failure, too: its end gives the turn to the schedule's next call
    const NicSchedule::Outcome outcome = schedule_->test();
    if (outcome == NicSchedule::Outcome::under_way) return false;
    if (outcome == NicSchedule::Outcome::failed) failed_ = error_other;
  }
  if (failed_ != success) {
    code = failed_;
    return true;
  }
  for (const Move& one : after_) {
    const int put = layer.put_bytes(one.at, one.place.capacity(), one.place);
    if (put != success) code = put;
  }
  return true;
}

int NicRun::wait() {
  int code = success;
  while (!test(code)) sched_yield();
  return code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
