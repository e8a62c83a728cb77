#include "mpi/nic/nic_team.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::mpi {

NicSchedule::NicSchedule(NicTeam& team, NicCall call, unsigned int flags, Room room)
    : team_(team), call_(std::move(call)), flags_(flags) {
  constexpr uint64_t line_bytes = 64;
  const uint64_t receive_at = (room.send + line_bytes - 1) / line_bytes * line_bytes;
  memory_.resize(receive_at + room.receive);
  if (room.send != 0) call_.call.send = memory_.data();
  if (room.receive != 0) call_.call.receive = memory_.data() + receive_at;
  const auto list = [](const auto& numbers) { return numbers.empty() ? nullptr : numbers.data(); };
  call_.call.send_bytes = list(call_.send_bytes);
  call_.call.send_at = list(call_.send_at);
  call_.call.receive_bytes = list(call_.receive_bytes);
  call_.call.receive_at = list(call_.receive_at);
  call_.call.source = list(call_.source);
  call_.call.destination = list(call_.destination);
}

NicSchedule::~NicSchedule() {
  if (schedule_ != nullptr) team_.nic_.spl_schedule_free(schedule_);
}

bool NicSchedule::make() {
  const int code =
      team_.team_ == nullptr ? PTL_FAIL : team_.nic_.spl_collective(team_.team_, &call_.call, flags_, &schedule_);
  if (code == PTL_NO_SPACE) return false;
  is_made_ = code == PTL_OK;
  has_failed_ = !is_made_;
  if (has_failed_) schedule_ = nullptr;
  return true;
}

NicSchedule::StartResult NicSchedule::start() {
  const int code = has_failed_ ? PTL_FAIL : team_.nic_.spl_schedule_start(schedule_);
  if (code == PTL_OK) return StartResult::started;
  if (code == PTL_NO_SPACE) return StartResult::no_room;
  ++running_turn_;
  return StartResult::failed;
}

NicSchedule::Outcome NicSchedule::test() {
  int is_over = 0;
  const int code = team_.nic_.spl_schedule_test(schedule_, &is_over);
  if (code == PTL_OK && is_over == 0) return Outcome::under_way;
  ++running_turn_;
  return code == PTL_OK ? Outcome::over : Outcome::failed;
}

NicTeam::NicTeam(Nic& nic, uint32_t id, std::span<const uint32_t> ranks, uint32_t own_rank)
    : nic_(nic), id_(id), rank_(own_rank), size_(static_cast<uint32_t>(ranks.size())) {
  const std::vector<ptl_rank_t> members(ranks.begin(), ranks.end());
  nic_.take_id(id_);
  if (nic_.spl_team_make(nic_.engine(), id_, members.data(), size_, &team_) != PTL_OK) team_ = nullptr;
}

NicTeam::~NicTeam() {
  short_schedules_.clear();
  unmade_.clear();
  if (team_ != nullptr) nic_.spl_team_free(team_);
  nic_.give_back_id(id_);
}

std::shared_ptr<NicSchedule> NicTeam::make(NicCall call, unsigned int flags, NicSchedule::Room room) {
  auto schedule = std::make_shared<NicSchedule>(*this, std::move(call), flags, room);
  if (!unmade_.empty() || !schedule->make()) unmade_.push_back(schedule);
  return schedule;
}

void NicTeam::advance() {
  while (!unmade_.empty() && unmade_.front()->make()) unmade_.pop_front();
}

NicTeam::ShortSchedules& NicTeam::schedules_like(const Facts& facts) {
  ++calls_;
  const auto found = std::ranges::find(short_schedules_, facts, &ShortSchedules::facts);
  if (found != short_schedules_.end()) return *found;
  if (short_schedules_.size() < short_schedules_max)
    return short_schedules_.emplace_back(ShortSchedules{.facts = facts});
  ShortSchedules& oldest = *std::ranges::min_element(short_schedules_, {}, &ShortSchedules::used);
  oldest = ShortSchedules{.facts = facts};
  return oldest;
}

std::shared_ptr<NicSchedule> NicTeam::short_schedule(const Facts& facts, NicSchedule::Room room) {
  ShortSchedules& alike = schedules_like(facts);
  alike.used = calls_;
  std::shared_ptr<NicSchedule>& schedule = alike.schedules[alike.next];
  alike.next = (alike.next + 1) % alike_max;
  if (schedule) return schedule;
  NicCall call;
  call.call.operation = facts.operation;
  call.call.root = facts.root;
  call.call.bytes = facts.bytes;
  call.call.op = facts.op;
  call.call.type = facts.type;
  schedule = make(std::move(call), SPL_CACHED, room);
  return schedule;
}

}  // namespace spinloom::mpi
