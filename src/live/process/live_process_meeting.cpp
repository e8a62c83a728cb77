// The part of LiveProcess that gets the cards of the other ranks: all of them at the start, or each when it arrives.
#include <unistd.h>

#include <mutex>
#include <utility>

#include "base/private_folder.hpp"
#include "live/process/live_process.hpp"

namespace spinloom::process {

// Decides whether the ranks meet one by one. All of them must come to the same answer before they have met, so it
// depends on what is the same for all: the launcher's word and the settings. A rank that shared memory does not reach
// refuses to meet so, and thus hears of ranks that do not refuse.
Status LiveProcess::choose_meeting() {
  if (launcher_->size() == 1 || !may_meet_at_contact(settings_)) return {};
  SPL_ASSIGN(const std::string job, launcher_->job_here());
  if (job.empty()) return {};
  const auto machine = live::machine_id();
  if (!machine && machine.error().code != Code::unsupported) return machine.error();
  const bool apart = !machine || live::traits_of_self() == 0 || !is_this_user(getuid());
  const auto make = apart ? live::Rendezvous::refuse : live::Rendezvous::open;
  SPL_ASSIGN((apart ? refusal_ : rendezvous_), make(job, launcher_->rank(), launcher_->size()));
  return {};
}

Status LiveProcess::meet_all(const std::string& mine) {
  SPL_ASSIGN(const auto texts, launcher_->exchange(mine, {.limit_s = settings_.start_s}));
  refusal_.reset();
  for (uint32_t rank = 0; rank < launcher_->size(); ++rank) {
    auto read = live::read_card(texts[rank]);
    if (!read) return fail(read.error().code, "rank ", rank, " cannot start: ", read.error().message);
    cards_.push_back(*read);
  }
  return {};
}

// Until a peer's card comes, the peer counts as one that shared memory reaches.
void LiveProcess::expect_all(const live::BusinessCard& mine) {
  live::BusinessCard peer;
  peer.machine = mine.machine;
  peer.user = mine.user;
  peer.traits = mine.traits;
  cards_.assign(launcher_->size(), peer);
  cards_[rank_] = mine;
  rendezvous_->set_card(mine);
}

// The watcher's thread calls this. Peers have their answers before it waits for a call that has the lock.
void LiveProcess::take_rendezvous_news() {
  auto news = rendezvous_->serve();
  progress_->watch(rendezvous_->descriptor(), meeting_tag());
  if (news.empty()) return;
  const std::lock_guard inside(node_->lock());
  for (live::Rendezvous::News& one : news) {
    const nic::Rank rank{one.rank};
    if (!one.card) {
      shm_->peer_lost(rank, one.why);
      continue;
    }
    cards_[one.rank] = std::move(*one.card);
    processors_[one.rank] = processors_of(static_cast<pid_t>(cards_[one.rank].pid));
    shm_->card_arrived(rank);
  }
  update_crowding();
  node_->drive();
  node_->tell_sleepers();
  progress_->note_call_end();
}

// Ranks that have not come count as ranks with this rank's processors. Called under the lock.
void LiveProcess::update_crowding() {
  std::vector<Processors> here;
  size_t own = 0;
  for (uint32_t rank = 0; rank < rank_count(); ++rank) {
    if (cards_[rank].machine != cards_[rank_].machine) continue;
    if (rank == rank_) own = here.size();
    here.push_back(processors_[rank]);
  }
  crowded_ = are_crowded(here, own);
  node_->set_patience(crowded_ ? Time{} : Time{int64_t{settings_.spin_us} * 1'000'000});
  // Helping would take processor time from other ranks.
  shm_->set_help_from(crowded_ ? UINT64_MAX : live::ShmOptions{}.help_from_bytes);
}

}  // namespace spinloom::process
