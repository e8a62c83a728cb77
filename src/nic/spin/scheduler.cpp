#include "nic/spin/scheduler.hpp"

#include <algorithm>
#include <bit>

namespace spinloom::spin {

IdleHpus::IdleHpus(uint32_t count) {
  for (uint32_t hpu = 0; hpu < count; ++hpu) add(hpu);
}

void IdleHpus::add(uint32_t hpu) {
  SPL_ASSERT((words_[hpu / 64] >> (hpu % 64) & 1) == 0, "HPU ", hpu, " is idle already");
  words_[hpu / 64] |= uint64_t{1} << (hpu % 64);
  ++count_;
}

bool IdleHpus::any_of(const HpuMask& mask) const {
  for (uint32_t word = 0; word < words_.size(); ++word) {
    if ((words_[word] & mask.words[word]) != 0) return true;
  }
  return false;
}

uint32_t IdleHpus::take_lowest(const HpuMask* mask) {
  for (uint32_t word = 0; word < words_.size(); ++word) {
    const uint64_t here = mask == nullptr ? words_[word] : words_[word] & mask->words[word];
    if (here == 0) continue;
    const auto bit = static_cast<uint32_t>(std::countr_zero(here));
    words_[word] &= ~(uint64_t{1} << bit);
    SPL_ASSERT(count_ > 0, "HPU ", bit);
    --count_;
    return word * 64 + bit;
  }
  SPL_ASSERT(false, "no idle HPU");
}

void Scheduler::add(ContextId context, const std::optional<HpuMask>& mask, uint32_t vhpus) {
  const Result<ContextState*> created = contexts_.create(context);
  SPL_ASSERT(created.ok(), "context ", context);
  ContextState& state = **created;
  state.mask = mask;
  state.vhpus.resize(vhpus);
  if (mask || is_fair_) own_queue_contexts_.push_back(context);
}

void Scheduler::remove(ContextId context) {
  SPL_ASSERT(contexts_.find(context) != nullptr && contexts_.find(context)->runnable.empty(), "context ", context);
  std::erase(own_queue_contexts_, context);
  contexts_.remove(context);
}

void Scheduler::ready(HerId her, ContextId context, VhpuId index) {
  if (!index.exists() && own_queue_contexts_.empty()) return add_runnable(unmasked_, {her, context, {}});
  ContextState& state = *contexts_.find(context);
  if (!index.exists()) return add_runnable(state, {her, context, {}});
  SPL_ASSERT(index.value < state.vhpus.size(), index, " of ", state.vhpus.size());
  VirtualHpu& vhpu = state.vhpus[index.value];
  vhpu.ready.push(her);
  if (vhpu.queued || vhpu.hpu.exists()) return;
  vhpu.queued = true;
  add_runnable(state, {{}, context, index});
}

void Scheduler::add_runnable(Fifo<Runnable>& queue, Runnable runnable) {
  runnable.sequence = next_sequence_++;
  ++runnable_;
  queue.push(runnable);
}

void Scheduler::add_runnable(ContextState& state, Runnable runnable) {
  if (!state.mask && !is_fair_) return add_runnable(unmasked_, runnable);
  if (state.runnable.empty()) state.cycles = std::max(state.cycles, served_cycles_);
  add_runnable(state.runnable, runnable);
}

// Among the queues for which an HPU is idle: with fairness, that of the context that has had the fewest cycles; of
// equals, and without fairness, the one whose first element has waited longest.
Fifo<Scheduler::Runnable>* Scheduler::next_queue() {
  Fifo<Runnable>* queue = unmasked_.empty() ? nullptr : &unmasked_;
  const ContextState* fairest = nullptr;
  for (const ContextId id : own_queue_contexts_) {
    ContextState& state = *contexts_.find(id);
    if (state.runnable.empty() || (state.mask && !idle_.any_of(*state.mask))) continue;
    const bool earlier = queue == nullptr || state.runnable.front().sequence < queue->front().sequence;
    const bool better =
        !is_fair_ || fairest == nullptr || state.cycles == fairest->cycles ? earlier : state.cycles < fairest->cycles;
    if (!better) continue;
    queue = &state.runnable;
    fairest = &state;
  }
  if (is_fair_ && fairest != nullptr) served_cycles_ = fairest->cycles;
  return queue;
}

std::optional<Scheduler::Start> Scheduler::start_next() {
  Fifo<Runnable>* const queue = next_queue();
  if (queue == nullptr) return std::nullopt;
  const Runnable next = queue->pop();
  SPL_ASSERT(runnable_ > 0, next.her);
  --runnable_;
  if (!next.vhpu.exists() && queue == &unmasked_) return Start{next.her, HpuId{idle_.take_lowest(nullptr)}};
  ContextState& state = *contexts_.find(next.context);
  const HpuId hpu{idle_.take_lowest(state.mask ? &*state.mask : nullptr)};
  if (!next.vhpu.exists()) return Start{next.her, hpu};
  VirtualHpu& vhpu = state.vhpus[next.vhpu.value];
  SPL_ASSERT(vhpu.queued && !vhpu.hpu.exists() && !vhpu.ready.empty(), "virtual HPU ", next.vhpu, " on ", vhpu.hpu);
  vhpu.queued = false;
  vhpu.hpu = hpu;
  return Start{vhpu.ready.pop(), hpu};
}

std::optional<HerId> Scheduler::ended(const Place& place) {
  if (place.vhpu.exists()) {
    VirtualHpu& vhpu = contexts_.find(place.context)->vhpus[place.vhpu.value];
    SPL_ASSERT(vhpu.hpu == place.hpu, "virtual HPU ", place.vhpu, " runs on ", vhpu.hpu, ", not on ", place.hpu);
    if (!vhpu.ready.empty()) return vhpu.ready.pop();
    vhpu.hpu = {};
  }
  idle_.add(place.hpu.value);
  return std::nullopt;
}

void Scheduler::check_invariants() const {
  size_t runnable = unmasked_.size();
  contexts_.for_each([&](ContextId id, const ContextState& state) {
    runnable += state.runnable.size();
    for (const VirtualHpu& vhpu : state.vhpus) {
      const bool waits = vhpu.queued && !vhpu.ready.empty();
      const bool idle = !vhpu.queued && vhpu.ready.empty();
      SPL_ASSERT(vhpu.hpu.exists() ? !vhpu.queued : waits || idle, "a virtual HPU of context ", id, " with ",
                 vhpu.ready.size(), " handlers neither runs, waits nor is idle");
    }
  });
  SPL_ASSERT(runnable == runnable_, runnable, " candidates for an HPU, and ", runnable_, " are counted");
}

}  // namespace spinloom::spin
