// The part of LiveProcess that leaves: it waits for what has not arrived, tells the peers, and ends the threads.
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "live/node/futex.hpp"
#include "live/process/live_process.hpp"

namespace spinloom::process {
namespace {

constexpr Time look_again{1'000'000'000};  // 1 ms: how often to look at what peers have taken

}  // namespace

bool LiveProcess::drain() {
  node_->drive();
  farewell_.begin(live::monotonic_now());
  for (bool waits = true; waits;) {
    waits = false;
    const Time now = live::monotonic_now();
    for (uint32_t peer = 0; peer < rank_count(); ++peer) {
      const nic::Rank rank{peer};
      waits = farewell_.update(now, rank, node_->outstanding(rank)) || waits;
    }
    if (waits) node_->wait_until(now + look_again);
  }
  const bool may_be_written = farewell_.may_be_written();
  const std::string late = farewell_.late_text();
  const std::string owing = farewell_.owing_text();
  if (std::exchange(told_owing_, owing) != owing && !owing.empty()) {
    log::emit(log::Level::warning, "live",
              text("PtlNIFini or PtlFini: ", owing,
                   "; until it does or ends, the memory for its reply must be neither freed nor used"));
  }
  if (!late.empty()) {
    log::emit(
        log::Level::warning, "live",
        text("PtlNIFini or PtlFini has waited ", settings_.end_s, " s (SPINLOOM_END_S): ", late,
             may_be_written ? "; until that peer goes on or ends, the memory must be neither freed nor used" : ""));
  }
  return !may_be_written;
}

bool LiveProcess::close() {
  {
    const std::lock_guard inside(node_->lock());
    std::ignore = drain();
    const std::string lost = farewell_.loss_text();
    if (!lost.empty()) log::emit(log::Level::warning, "live", text("PtlFini: ", lost));
    say_goodbye();
  }
  stop();
  if (!std::exchange(has_left_launcher_, true)) live::leave(*launcher_);
  return true;
}

void LiveProcess::abandon() {
  {
    const std::lock_guard inside(node_->lock());
    const auto is_written = [this] {
      for (uint32_t peer = 0; peer < size(); ++peer) {
        if (const live::Outstanding outstanding = node_->outstanding(nic::Rank{peer});
            outstanding.may_write && !outstanding.is_lost)
          return true;
      }
      return false;
    };
    for (node_->drive(); is_written();) node_->wait_until(live::monotonic_now() + look_again);
    say_goodbye();
  }
  stop();
}

// Called under the lock.
void LiveProcess::say_goodbye() {
  if (bridge_) leave_bridge();
  node_->end_publications();
  shm_->say_goodbye();
  if (udp_) udp_->say_goodbye();
  if (fabric_) fabric_->say_goodbye();
  if (trace_) trace_->flush();
  node_->forget_pool();
}

void LiveProcess::note_exit() {
  if (state_) state_->say("left", "has ended without closing its interfaces");
}

void LiveProcess::stop() {
  if (pool_ && !pool_->shut_down()) std::ignore = pool_.release();  // a handler that does not return keeps its memory
  progress_->stop();  // kept, because late calls still ask it
  if (rendezvous_) rendezvous_->stop_answering();
  if (state_) state_->say("left", "has left the job");
}

}  // namespace spinloom::process
