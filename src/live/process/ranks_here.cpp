#include "live/process/ranks_here.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "live/process/railed_process.hpp"

namespace spinloom::process {
namespace {

Error child_error() { return fail(Code::unsupported, "a forked child has no place in the job of its parent"); }

}  // namespace

thread_local RanksHere::Rank* RanksHere::entered_ = nullptr;

RanksHere::Rank* RanksHere::current_rank() {
  if (ranks_.empty()) return &single_rank_;
  return entered_;
}

Result<calls::Process*> RanksHere::join() {
  if (forked_) return child_error();
  Rank* rank = nullptr;
  {
    const std::lock_guard inside(lock_);
    rank = current_rank();
    if (rank == nullptr) return fail(Code::invalid, "this thread belongs to no rank: it must call PtlSpinRankEnter");
    single_rank_used_ = single_rank_used_ || rank == &single_rank_;
  }
  const std::lock_guard one_at_a_time(rank->joining);
  if (rank->process != nullptr) return rank->process;
  const Settings settings = rank->launcher ? settings_ : program_.settings();
  std::shared_ptr<live::Launcher> launcher = rank->launcher ? rank->launcher : std::exchange(unused_launcher_, nullptr);
  if (!launcher) {
    SPL_ASSIGN(launcher, live::find_launcher());
  }
  if (Status joined = join_job(*rank, settings, launcher); !joined.ok()) {
    const std::lock_guard inside(lock_);
    live::note_failed_start(*launcher);
    if (!rank->launcher) unused_launcher_ = std::move(launcher);
    return joined.error();
  }
  rank->process = new calls::Process(*rank->host);
  rank->nics.front()->set_activity([process = rank->process] {
    process->host().begin_call();
    std::string doing = process->describe_activity();
    process->host().end_call();
    return doing;
  });
  const std::lock_guard inside(lock_);
  if (!std::exchange(exit_action_set_, true)) live::set_exit_action(*launcher, program_.at_exit);
  return rank->process;
}

Status RanksHere::join_job(Rank& rank, const Settings& settings, const std::shared_ptr<live::Launcher>& launcher) {
  if (settings.rails.empty()) {
    SPL_ASSIGN(auto nics, LiveProcess::join(settings, launcher));
    rank.nics = {nics.get()};
    rank.host = nics.release();
    return {};
  }
  SPL_ASSIGN(auto nics, RailedProcess::join(settings, launcher));
  for (uint32_t rail = 0; rail < nics->rails(); ++rail) rank.nics.push_back(&nics->rail(rail));
  rank.host = nics.release();
  return {};
}

Status RanksHere::split(uint32_t count) {
  if (forked_) return child_error();
  const std::lock_guard inside(lock_);
  if (count == 0) return fail(Code::invalid, "a process with no rank");
  if (single_rank_used_ || !ranks_.empty()) {
    return fail(Code::invalid, "the ranks of this process are made already: call this once, and before PtlInit");
  }
  settings_ = program_.settings();
  SPL_ASSIGN(auto found, live::find_launcher());
  launchers_ = live::ThreadLaunchers::create(std::move(found), count);
  for (uint32_t number = 0; number < count; ++number) {
    ranks_.push_back(std::make_unique<Rank>());
    ranks_.back()->number = number;
    ranks_.back()->launcher = launchers_->launcher_of(number);
  }
  return {};
}

Status RanksHere::enter(uint32_t number) {
  const std::lock_guard inside(lock_);
  if (number >= ranks_.size()) {
    return fail(Code::invalid, "there is no rank number ", number, " in this process, which has ", ranks_.size());
  }
  entered_ = ranks_[number].get();
  calls::Process::sit(&entered_->seat);
  return {};
}

Result<RanksHere::EndResult> RanksHere::end() {
  Rank* const rank = entered_;
  if (rank == nullptr) return fail(Code::invalid, "this thread belongs to no rank");
  {
    const std::lock_guard inside(lock_);
    if (std::exchange(rank->ended, true)) return EndResult::clean;
  }
  launchers_->quit(rank->number);  // ranks that wait in PtlInit do not wait for this one then
  const std::lock_guard one_at_a_time(rank->joining);
  if (rank->process == nullptr || leave(*rank)) return EndResult::clean;
  rank->process->abort();
  for (LiveProcess* const nic : rank->nics) nic->abandon();
  rank->host->begin_call();
  rank->process->init_count = 0;
  rank->process->is_closed = true;
  rank->host->end_call();
  return EndResult::with_calls_open;
}

// Leaves the job for a rank whose program has closed its interfaces; false if it has not closed them.
bool RanksHere::leave(Rank& rank) {
  calls::Process& process = *rank.process;
  if (process.is_closed) return true;
  for (uint32_t number = 0; number < calls::interface_count; ++number) {
    if (process.interface_at(number)) return false;
  }
  process.init_count = std::min(process.init_count, 1u);
  calls::Process::enter(&process);
  PtlFini();
  calls::Process::enter(nullptr);
  return true;
}

void RanksHere::leave_all() {
  const auto end = [](Rank& rank) {
    if (rank.process != nullptr && !leave(rank)) rank.nics.front()->note_exit();
  };
  end(single_rank_);
  for (const auto& rank : ranks_) {
    if (!rank->ended) end(*rank);
  }
}

void RanksHere::forget_in_child() {
  forked_ = true;
  single_rank_.process = nullptr;
  for (const auto& rank : ranks_) rank->process = nullptr;
  calls::Process::forget_all_threads();
}

}  // namespace spinloom::process
