#include "live/process/railed_process.hpp"

#include <tuple>

#include "live/process/rail_wish.hpp"

namespace spinloom::process {

Result<std::unique_ptr<RailedProcess>> RailedProcess::join(const Settings& settings,
                                                           const std::shared_ptr<live::Launcher>& launcher) {
  std::unique_ptr<RailedProcess> process(new RailedProcess);
  for (uint32_t rail = 0; rail < settings.rails.size(); ++rail) {
    auto joined = LiveProcess::join(settings_of(settings, rail), launcher);
    if (!joined) {
      return fail(joined.error().code, "rail ", rail, " (", settings.rails[rail].name, "): ", joined.error().message);
    }
    process->rails_.push_back(std::move(*joined));
    process->names_.push_back(settings.rails[rail].name);
  }
  process->patience_ = process->node(0).has_patience() ? Time{int64_t{settings.spin_us} * 1'000'000} : Time{};
  for (uint32_t rail = 0; rail < process->rails(); ++rail) {
    live::Node& node = process->node(rail);
    process->ports_.emplace_back(*process, node);
    if (rail == 0) continue;
    const std::lock_guard inside(node.lock());
    node.set_listener([railed = process.get()] {
      if (railed->asleep_ > 0) railed->node(0).interrupt();
    });
  }
  return process;
}

RailedProcess::~RailedProcess() = default;

rails::RailFacts RailedProcess::rail_facts(uint32_t rail) {
  rails::RailFacts facts;
  facts.name = names_[rail];
  for (uint32_t peer = 0; peer < size(); ++peer) facts.reaches.push_back(rails_[rail]->reaches(peer));
  return facts;
}

void RailedProcess::lock_all() {
  for (uint32_t rail = rails(); rail-- > 0;) node(rail).lock().lock();
}

void RailedProcess::unlock_all() {
  for (uint32_t rail = 0; rail < rails(); ++rail) node(rail).lock().unlock();
}

void RailedProcess::begin_call() {
  for (uint32_t rail = rails(); rail-- > 0;) rails_[rail]->begin_call();
}

void RailedProcess::end_call() {
  for (uint32_t rail = 0; rail < rails(); ++rail) rails_[rail]->end_call();
}

bool RailedProcess::poll_all() {
  bool happened = false;
  for (uint32_t rail = 0; rail < rails(); ++rail) happened = node(rail).poll() || happened;
  return happened;
}

// If nothing has come, lets others have the locks, and on a crowded machine the processor, as in a process with one
// NIC.
void RailedProcess::poll() {
  if (poll_all()) return;
  for (uint32_t rail = rails(); rail-- > 1;) node(rail).lock().unlock();
  rails_.front()->poll();
  node(0).lock().unlock();
  lock_all();
}

uint64_t RailedProcess::changes() const {
  uint64_t sum = 0;
  for (uint32_t rail = 0; rail < rails(); ++rail) sum += node(rail).changes();
  return sum;
}

// A helper may find the news while this caller lets others in.
void RailedProcess::wait(Time deadline) {
  const uint64_t before = changes();
  const Time patient_until = std::min(deadline, live::monotonic_now() + patience_);
  do {
    if (poll_all() || changes() != before) return;
    bool wanted = false;
    for (uint32_t rail = 0; rail < rails(); ++rail) wanted = wanted || node(rail).lock().has_waiters();
    if (wanted) {
      unlock_all();
      live::relax();
      lock_all();
    }
  } while (live::monotonic_now() < patient_until);
  if (changes() == before && live::monotonic_now() < deadline) sleep_until(deadline);
}

// From now on the helpers find news. They interrupt rail 0, whose lock they get only when this caller sleeps.
void RailedProcess::sleep_until(Time deadline) {
  ++asleep_;
  bool news = false;
  for (uint32_t rail = 1; rail < rails(); ++rail) news = node(rail).leave_to_helper() || news;
  if (!news) {
    for (uint32_t rail = 1; rail < rails(); ++rail) node(rail).lock().unlock();
    node(0).wait_until(deadline);
    node(0).lock().unlock();
    --asleep_;
    lock_all();
    return;
  }
  --asleep_;
}

// A peer may take what it was sent only after this rank has gone on with another rail, so each rail is drained alone.
bool RailedProcess::drain() {
  unlock_all();
  bool drained = true;
  for (const auto& rail : rails_) {
    rail->begin_call();
    drained = rail->drain() && drained;
    rail->end_call();
  }
  lock_all();
  return drained;
}

bool RailedProcess::close() {
  bool closed = false;
  for (const auto& rail : rails_) closed = rail->close() || closed;
  return closed;
}

}  // namespace spinloom::process
