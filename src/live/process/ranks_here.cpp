#include "live/process/ranks_here.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "live/process/railed_process.hpp"

namespace spinloom::process {
namespace {

Error child() { return fail(Code::unsupported, "a forked child has no place in the job of its parent"); }

}  // namespace

thread_local RanksHere::Rank* RanksHere::entered_ = nullptr;

RanksHere::Rank* RanksHere::own() {
  if (ranks_.empty()) return &only_;
  return entered_;
}

Result<calls::Process*> RanksHere::join() {
  if (forked_) return child();
  Rank* rank = nullptr;
  {
    const std::lock_guard inside(lock_);
    rank = own();
    if (rank == nullptr) return fail(Code::invalid, "this thread belongs to no rank: it must call PtlSpinRankEnter");
    only_asked_ = only_asked_ || rank == &only_;
  }
  const std::lock_guard one_at_a_time(rank->joining);
  if (rank->process != nullptr) return rank->process;
  const Settings settings = rank->launcher ? settings_ : program_.settings();
  std::shared_ptr<live::Launcher> launcher = rank->launcher;
  if (!launcher) {
    SPL_ASSIGN(launcher, live::find_launcher());
  }
  SPL_TRY(join_job(*rank, settings, launcher));
  rank->process = new calls::Process(*rank->joined);
  rank->nics.front()->tell_doing([process = rank->process] {
    process->host().begin_call();
    std::string doing = process->doing();
    process->host().end_call();
    return doing;
  });
  const std::lock_guard inside(lock_);
  if (!std::exchange(attends_, true)) live::attend_to_end(*launcher, program_.leaving);
  return rank->process;
}

Status RanksHere::join_job(Rank& rank, const Settings& settings, const std::shared_ptr<live::Launcher>& launcher) {
  if (settings.rails.empty()) {
    SPL_ASSIGN(auto made, LiveProcess::join(settings, launcher));
    rank.nics = {made.get()};
    rank.joined = made.release();
    return {};
  }
  SPL_ASSIGN(auto made, RailedProcess::join(settings, launcher));
  for (uint32_t rail = 0; rail < made->rails(); ++rail) rank.nics.push_back(&made->rail(rail));
  rank.joined = made.release();
  return {};
}

Status RanksHere::split(uint32_t count) {
  if (forked_) return child();
  const std::lock_guard inside(lock_);
  if (count == 0) return fail(Code::invalid, "a process with no rank");
  if (only_asked_ || !ranks_.empty()) {
    return fail(Code::invalid, "the ranks of this process are made already: call this once, and before PtlInit");
  }
  settings_ = program_.settings();
  SPL_ASSIGN(auto found, live::find_launcher());
  launchers_ = live::ThreadLaunchers::create(std::move(found), count);
  for (uint32_t number = 0; number < count; ++number) {
    ranks_.push_back(std::make_unique<Rank>());
    ranks_.back()->number = number;
    ranks_.back()->launcher = launchers_->of(number);
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

Result<RanksHere::Left> RanksHere::end() {
  Rank* const rank = entered_;
  if (rank == nullptr) return fail(Code::invalid, "this thread belongs to no rank");
  {
    const std::lock_guard inside(lock_);
    if (std::exchange(rank->ended, true)) return Left::well;
  }
  launchers_->quit(rank->number);  // so ranks that wait in PtlInit do not wait for this one
  const std::lock_guard one_at_a_time(rank->joining);
  if (rank->process == nullptr || leave(*rank)) return Left::well;
  rank->process->abort();
  for (LiveProcess* const nic : rank->nics) nic->abandon();
  rank->joined->begin_call();
  rank->process->initialised = 0;
  rank->process->closed = true;
  rank->joined->end_call();
  return Left::with_calls_open;
}

// Leaves the job for a rank whose program has closed its interfaces; false if it has not closed them.
bool RanksHere::leave(Rank& rank) {
  calls::Process& process = *rank.process;
  if (process.closed) return true;
  for (uint32_t number = 0; number < calls::interface_count; ++number) {
    if (process.interface_at(number)) return false;
  }
  process.initialised = std::min(process.initialised, 1u);
  calls::Process::enter(&process);
  PtlFini();
  calls::Process::enter(nullptr);
  return true;
}

void RanksHere::leave_all() {
  const auto end = [](Rank& rank) {
    if (rank.process != nullptr && !leave(rank)) rank.nics.front()->tell_exit();
  };
  end(only_);
  for (const auto& rank : ranks_) {
    if (!rank->ended) end(*rank);
  }
}

void RanksHere::forget_in_child() {
  forked_ = true;
  only_.process = nullptr;
  for (const auto& rank : ranks_) rank->process = nullptr;
  calls::Process::forget_all_threads();
}

}  // namespace spinloom::process
