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
  const Result<Member*> made = members_.create(context);
  SPL_ASSERT(made.ok(), "context ", context);
  Member& member = **made;
  member.mask = mask;
  member.vhpus.resize(vhpus);
  if (mask || fair_) apart_.push_back(context);
}

void Scheduler::remove(ContextId context) {
  SPL_ASSERT(members_.find(context) != nullptr && members_.find(context)->runnable.empty(), "context ", context);
  std::erase(apart_, context);
  members_.remove(context);
}

void Scheduler::ready(HerId her, ContextId context, VhpuId index) {
  if (!index.exists() && apart_.empty()) return add_runnable(unmasked_, {her, context, {}});
  Member& member = *members_.find(context);
  if (!index.exists()) return add_runnable(member, {her, context, {}});
  SPL_ASSERT(index.value < member.vhpus.size(), index, " of ", member.vhpus.size());
  VirtualHpu& vhpu = member.vhpus[index.value];
  vhpu.ready.push(her);
  if (vhpu.queued || vhpu.hpu.exists()) return;
  vhpu.queued = true;
  add_runnable(member, {{}, context, index});
}

void Scheduler::add_runnable(Fifo<Runnable>& queue, Runnable one) {
  one.sequence = next_sequence_++;
  ++runnable_;
  queue.push(one);
}

void Scheduler::add_runnable(Member& member, Runnable one) {
  if (!member.mask && !fair_) return add_runnable(unmasked_, one);
  if (member.runnable.empty()) member.cycles = std::max(member.cycles, cycles_);
  add_runnable(member.runnable, one);
}

// Among the queues for which an HPU is idle: with fairness, that of the context that has had the fewest cycles; of
// equals, and without fairness, the one whose first element has waited longest.
Fifo<Scheduler::Runnable>* Scheduler::oldest() {
  Fifo<Runnable>* found = unmasked_.empty() ? nullptr : &unmasked_;
  const Member* fairest = nullptr;
  for (const ContextId id : apart_) {
    Member& member = *members_.find(id);
    if (member.runnable.empty() || (member.mask && !idle_.any_of(*member.mask))) continue;
    const bool earlier = found == nullptr || member.runnable.front().sequence < found->front().sequence;
    const bool better =
        !fair_ || fairest == nullptr || member.cycles == fairest->cycles ? earlier : member.cycles < fairest->cycles;
    if (!better) continue;
    found = &member.runnable;
    fairest = &member;
  }
  if (fair_ && fairest != nullptr) cycles_ = fairest->cycles;
  return found;
}

std::optional<Scheduler::Start> Scheduler::pick() {
  Fifo<Runnable>* const queue = oldest();
  if (queue == nullptr) return std::nullopt;
  const Runnable next = queue->pop();
  SPL_ASSERT(runnable_ > 0, next.her);
  --runnable_;
  if (!next.vhpu.exists() && queue == &unmasked_) return Start{next.her, HpuId{idle_.take_lowest(nullptr)}};
  Member& member = *members_.find(next.context);
  const HpuId hpu{idle_.take_lowest(member.mask ? &*member.mask : nullptr)};
  if (!next.vhpu.exists()) return Start{next.her, hpu};
  VirtualHpu& vhpu = member.vhpus[next.vhpu.value];
  SPL_ASSERT(vhpu.queued && !vhpu.hpu.exists() && !vhpu.ready.empty(), "virtual HPU ", next.vhpu, " on ", vhpu.hpu);
  vhpu.queued = false;
  vhpu.hpu = hpu;
  return Start{vhpu.ready.pop(), hpu};
}

std::optional<HerId> Scheduler::ended(const Place& place) {
  if (place.vhpu.exists()) {
    VirtualHpu& vhpu = members_.find(place.context)->vhpus[place.vhpu.value];
    SPL_ASSERT(vhpu.hpu == place.hpu, "virtual HPU ", place.vhpu, " runs on ", vhpu.hpu, ", not on ", place.hpu);
    if (!vhpu.ready.empty()) return vhpu.ready.pop();
    vhpu.hpu = {};
  }
  idle_.add(place.hpu.value);
  return std::nullopt;
}

}  // namespace spinloom::spin
