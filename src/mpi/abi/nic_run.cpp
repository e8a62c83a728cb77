#include "mpi/abi/nic_run.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace spinloom::mpi::SPINLOOM_ABI {

NicRun::Move NicRun::move_of(const Place& place, uint8_t* packed) {
  Move move{place, packed, nullptr};
  if (place.form->is_known) return move;
  move.kept_type = std::make_unique<KeptType>();
  move.kept_type->is_held = real.Type_dup(place.type, &move.kept_type->type) == success;
  if (move.kept_type->is_held) move.place.type = move.kept_type->type;
  return move;
}

bool NicRun::try_start(int& code) {
  team_->advance();
  if (!schedule_->may_start(turn_)) return false;
  std::ranges::fill(cleared_, uint8_t{0});
  for (const Move& move : packs_) {
    const Form& form = *move.place.form;
    if (form.is_known) {
      Message(form, move.place.count, move.place.buffer).pack({0, move.place.capacity()}, move.packed);
      continue;
    }
    std::vector<uint8_t> bytes;
    if (!layer.copy(move.place, bytes)) code = error_other;
    std::memcpy(move.packed, bytes.data(), bytes.size());
  }
  start_result_ = schedule_->start();
  if (start_result_ == NicSchedule::StartResult::failed) code = error_other;
  return start_result_ != NicSchedule::StartResult::no_room;
}

int NicRun::begin() {
  const Lock lock;  // persistent calls are started without it
  turn_ = schedule_->take_turn();
  start_result_ = NicSchedule::StartResult::no_room;
  code_ = success;
  (void)try_start(code_);
  return success;  // the request reports a failure: the other ranks are in the call
}

bool NicRun::test(int& code) {
  const Lock lock;
  code = success;
  if (start_result_ == NicSchedule::StartResult::no_room && !try_start(code_)) return false;
  // This comes after a failure, too: its end gives the turn to the schedule's next call.
  if (start_result_ == NicSchedule::StartResult::started) {
    const NicSchedule::Outcome outcome = schedule_->test();
    if (outcome == NicSchedule::Outcome::under_way) return false;
    if (outcome == NicSchedule::Outcome::failed) code_ = error_other;
  }
  if (code_ != success) {
    code = code_;
    return true;
  }
  for (const Move& move : unpacks_) {
    const int put = layer.put_bytes(move.packed, move.place.capacity(), move.place);
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
