// The node as a Port: commands, events, counters, and waiting for them.
#include "live/node/node.hpp"

#include <algorithm>
#include <utility>

#include "live/node/futex.hpp"

namespace spinloom::live {

constexpr int clock_every = 32;        // polls between two looks at the clock
constexpr uint32_t look_every = 16;    // puts between two looks for what has come
constexpr int catch_up_polls = 20000;  // some hundred microseconds

// Changes a count under the lock. Other threads only read it, so no locked instruction is needed, which would wait for
// earlier stores.
uint32_t change(std::atomic<uint32_t>& count, int by) {
  const uint32_t sum = count.load(std::memory_order_relaxed) + static_cast<uint32_t>(by);
  count.store(sum, std::memory_order_relaxed);
  return sum;
}

Node::Node(nic::Rank rank, uint32_t ranks, const nic::NicLimits& limits, Segment& own)
    : rank_(rank),
      engine_(rank, limits, &memory_),
      own_(own),
      routes_(ranks),
      nic_memory_(limits.nic_memory_bytes),
      blocked_(ranks) {}

Node::~Node() = default;

void Node::submit(const nic::Command& command) {
  actions_.clear();
  engine_.on_command(command, actions_);
  perform();
  settle();
}

void Node::put(const nic::Put& put) {
  actions_.clear();
  engine_.on_put(put, actions_);
  perform();
  if (!follow_ups_.empty() || !blocked_.empty()) settle();
  let_catch_up(put.target);
  if (!doorbell().helper_listens()) look_now_and_then();
}

// Sends a put without the engine's general way, if neither the engine nor the way to the peer has to decide or wait.
// False: nothing has happened.
bool Node::put_quickly(const nic::QuickPut& put) {
  Transport* const way = put.target.value < routes_.size() ? routes_[put.target.value] : nullptr;
  if (way == nullptr || !follow_ups_.empty() || !blocked_.empty()) return false;
  const std::optional<uint64_t> message = engine_.quick_put(put);
  if (!message || !way->send_small(put, *message)) return false;
  publish(engine_.quick_sent(put));
  if (!doorbell().helper_listens()) look_now_and_then();
  return true;
}

// A program that only puts must look now and then itself, because nobody hears the bell while it is active.
void Node::look_now_and_then() {
  if (++puts_ % look_every != 0) return;
  poll();
}

// Slows a program that puts faster than its peer takes down to the peer's pace, within limits. Puts to other peers
// are not slowed down.
void Node::let_catch_up(nic::Rank target) {
  for (int tries = 0; tries < catch_up_polls && congested(target); ++tries) {
    if (!drive()) relax();
  }
}

bool Node::congested(nic::Rank target) const {
  if (target == rank_) return blocked_.is_full(rank_);
  const Transport* const way = target.value < routes_.size() ? routes_[target.value] : nullptr;
  return way != nullptr && way->congested(target);
}

bool Node::drive() {
  bool happened = !follow_ups_.empty();
  for (Transport* transport : transports_) happened = transport->poll() || happened;
  settle();
  return happened;
}

bool Node::poll() {
  if (asleep_ == 0) doorbell().drive();
  const bool happened = drive();
  polled_.store(true, std::memory_order_relaxed);
  return happened;
}

bool Node::has_news() const {
  if (!follow_ups_.empty()) return true;
  for (const Transport* transport : transports_) {
    if (transport->has_news()) return true;
  }
  return false;
}

void Node::stop_polling() {
  doorbell().leave();
  for (Transport* transport : transports_) transport->arm();
}

Time Node::timer() const {
  Time next = follow_ups_.empty() ? Time::never() : Time{};
  for (const Transport* transport : transports_) next = std::min(next, transport->timer());
  return next;
}

bool Node::drained() const {
  if (!follow_ups_.empty()) return false;
  for (const Transport* transport : transports_) {
    if (!transport->drained()) return false;
  }
  return true;
}

Untaken Node::untaken(nic::Rank peer) const {
  Untaken own;
  own.packets = own.notes = follow_ups_.empty() ? 0 : 1;
  if (peer == rank_) return own;
  return routes_[peer.value] == nullptr ? Untaken{} : routes_[peer.value]->untaken(peer);
}

void Node::interrupt() {
  lock_.lock();
  ++interrupts_;
  lock_.unlock();
  doorbell().wake_all();
}

void Node::tell_sleepers() {
  const bool changed = std::exchange(told_changes_, mail_.changes()) != mail_.changes();
  if (asleep_ > 0 && (changed || timer() < asleep_until_)) doorbell().wake_callers();
  if (changed && listener_) listener_();
}

bool Node::leave_to_helper() {
  polled_ = false;
  stop_polling();
  if (after_) after_();  // the helper may have left timers to callers
  return has_news();
}

Status Node::wait() {
  wait_until(Time::never());
  return {};
}

void Node::wait_until(Time deadline) {
  const uint64_t changes = mail_.changes();
  const uint64_t interrupts = interrupts_;
  change(waiting_, 1);
  doorbell().drive();
  Time asleep_from = Time::never();
  for (int polls = 1; changes == mail_.changes() && interrupts == interrupts_; ++polls) {
    const bool happened = drive();
    if (changes != mail_.changes()) break;
    if (lock_.wanted()) lock_.yield();
    if (!happened) relax();
    if (polls % clock_every != 0) continue;
    const Time now = monotonic_now();
    if (now >= deadline) break;
    if (happened || asleep_from == Time::never()) asleep_from = now + patience_;
    if (happened || now < asleep_from) continue;
    if (changes == mail_.changes() && interrupts == interrupts_) doze(deadline);
    break;
  }
  if (change(waiting_, -1) == 0) {
    leave();
  } else if (waiting_ == asleep_) {
    stay_asleep();
  }
  tell_sleepers();  // this caller may have driven what another one waits for
}

// Lets this caller sleep until a ring, a timer or the deadline, unless something has come. A ring wakes all callers
// that sleep.
void Node::doze(Time deadline) {
  doorbell().doze();
  for (Transport* transport : transports_) transport->arm();
  const uint32_t value = doorbell().value();
  if (has_news() || !doorbell().callers_sleep()) return;
  tell_sleepers();
  const Time until = std::min(deadline, timer());
  asleep_until_ = asleep_ == 0 ? until : std::min(asleep_until_, until);
  change(asleep_, 1);
  lock_.unlock();
  doorbell().sleep(value, Doorbell::callers, until);
  lock_.lock();
  change(asleep_, -1);
}

// Called when the driving caller leaves and all waiting callers sleep: from now on the bell wakes them. This caller
// takes packets that have arrived meanwhile.
void Node::stay_asleep() {
  doorbell().doze();
  for (Transport* transport : transports_) transport->arm();
  asleep_until_ = Time::never();
  if (has_news()) drive();
  if (has_news()) doorbell().wake_callers();
}

// Called when no caller waits any more. One may come soon, so the helper takes over only after a while without calls.
void Node::leave() { polled_.store(true, std::memory_order_relaxed); }

}  // namespace spinloom::live
