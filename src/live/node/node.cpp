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
uint32_t add_under_lock(std::atomic<uint32_t>& count, int by) {
  const uint32_t sum = count.load(std::memory_order_relaxed) + static_cast<uint32_t>(by);
  count.store(sum, std::memory_order_relaxed);
  return sum;
}

Node::Node(nic::Rank rank, uint32_t ranks, const nic::NicLimits& limits, Segment& own)
    : rank_(rank),
      engine_(rank, limits, &memory_),
      own_(own),
      publications_(
          own, ranks,
          [this](uint32_t peer) { return routes_[peer] != nullptr && routes_[peer]->has_ended(nic::Rank{peer}); }),
      routes_(ranks),
      nic_memory_(limits.nic_memory_bytes),
      backlog_(ranks) {
  engine_.set_publisher(*this);
}

Node::~Node() = default;

void Node::submit(const nic::Command& command) {
  bring_counts();
  actions_.clear();
  engine_.on_command(command, actions_);
  perform();
  settle();
  if (publications_.is_stale()) publications_.refresh(engine_);
}

// Counts what peers have done in published entries.
void Node::bring_counts() {
  if (!publications_.has_counts()) return;
  for (const Publications::Count& count : publications_.take_counts()) {
    if (!engine_.counter(count.counter)) continue;  // it has been freed
    actions_.clear();
    engine_.on_command({nic::CounterInc{count.counter, {count.by, 0}}, {}, 0}, actions_);
    perform();
  }
}

// Tells the transports when nothing that has come is under way, so that peers may use published entries.
void Node::note_settled() {
  if (!publications_.any() || !follow_ups_.empty() || !backlog_.empty() || !engine_.is_settled()) return;
  for (Transport* transport : transports_) transport->note_settled();
}

void Node::put(const nic::Put& put) {
  actions_.clear();
  engine_.on_put(put, actions_);
  perform();
  if (!follow_ups_.empty() || !backlog_.empty()) settle();
  throttle(put.target);
  if (!doorbell().helper_sleeps()) poll_now_and_then();
}

// Sends a put without the engine's general way, if neither the engine nor the way to the peer has to decide or wait.
// False: nothing has happened.
bool Node::put_quickly(const nic::QuickPut& put) {
  Transport* const route = put.target.value < routes_.size() ? routes_[put.target.value] : nullptr;
  if (route == nullptr || !follow_ups_.empty() || !backlog_.empty()) return false;
  const std::optional<uint64_t> message = engine_.quick_put(put);
  if (!message || (!route->put_directly(put) && !route->send_small(put, *message))) return false;
  publish(engine_.quick_sent(put));
  if (!doorbell().helper_sleeps()) poll_now_and_then();
  return true;
}

// A program that only puts must look now and then itself, because nobody hears the bell while it is active.
void Node::poll_now_and_then() {
  if (++puts_ % look_every != 0) return;
  poll();
}

// Slows a program that puts faster than its peer takes down to the peer's pace, within limits. Puts to other peers
// are not slowed down.
void Node::throttle(nic::Rank target) {
  for (int tries = 0; tries < catch_up_polls && congested(target); ++tries) {
    if (!drive()) relax();
  }
}

bool Node::congested(nic::Rank target) const {
  if (target == rank_) return backlog_.is_full(rank_);
  const Transport* const route = target.value < routes_.size() ? routes_[target.value] : nullptr;
  return route != nullptr && route->congested(target);
}

bool Node::drive() {
  bool happened = !follow_ups_.empty() || publications_.has_counts();
  bring_counts();
  for (Transport* transport : transports_) happened = transport->poll() || happened;
  settle();
  note_settled();
  if (publications_.is_stale()) publications_.refresh(engine_);
  return happened;
}

bool Node::poll() {
  if (asleep_ == 0) doorbell().note_polling();
  const bool happened = drive();
  was_polled_.store(true, std::memory_order_relaxed);
  return happened;
}

bool Node::has_news() const {
  if (!follow_ups_.empty() || publications_.has_counts()) return true;
  for (const Transport* transport : transports_) {
    if (transport->has_news()) return true;
  }
  return false;
}

void Node::stop_polling() {
  doorbell().note_helper_sleeps();
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

Outstanding Node::outstanding(nic::Rank peer) const {
  Outstanding own_work;
  own_work.packets = own_work.control_packets = follow_ups_.empty() ? 0 : 1;
  if (peer == rank_) return own_work;
  Outstanding left = routes_[peer.value] == nullptr ? Outstanding{} : routes_[peer.value]->outstanding(peer);
  const nic::AwaitedReplies awaited = engine_.awaited_replies(peer);
  left.replies = awaited.count;
  left.progress += awaited.bytes_in;
  return left;
}

void Node::interrupt() {
  lock_.lock();
  ++interrupts_;
  lock_.unlock();
  doorbell().wake_all();
}

void Node::tell_sleepers() {
  const bool changed = std::exchange(reported_changes_, mail_.changes()) != mail_.changes();
  if (asleep_ > 0 && (changed || timer() < asleep_until_)) doorbell().wake_callers();
  if (changed && listener_) listener_();
}

bool Node::leave_to_helper() {
  was_polled_ = false;
  publications_.leave_counts_to_helper();
  stop_polling();
  if (on_work_left_) on_work_left_();  // the helper may have left timers to callers
  return has_news();
}

Status Node::wait() {
  wait_until(Time::never());
  return {};
}

void Node::wait_until(Time deadline) {
  const uint64_t changes = mail_.changes();
  const uint64_t interrupts = interrupts_;
  if (add_under_lock(waiting_, 1) == 1) publications_.note_waiting(true);
  doorbell().note_polling();
  Time sleep_at = Time::never();
  for (int polls = 1; changes == mail_.changes() && interrupts == interrupts_; ++polls) {
    const bool happened = drive();
    if (changes != mail_.changes()) break;
    if (lock_.has_waiters()) lock_.yield();
    if (!happened) relax();
    if (polls % clock_every != 0) continue;
    const Time now = monotonic_now();
    if (now >= deadline) break;
    if (happened || sleep_at == Time::never()) sleep_at = now + patience_;
    if (happened || now < sleep_at) continue;
    if (changes == mail_.changes() && interrupts == interrupts_) sleep_without_news(deadline);
    break;
  }
  if (add_under_lock(waiting_, -1) == 0) {
    publications_.note_waiting(false);
    note_polled();
  } else if (waiting_ == asleep_) {
    leave_to_sleepers();
  }
  tell_sleepers();  // this caller may have driven what another one waits for
}

// Lets this caller sleep until a ring, a timer or the deadline, unless something has come. A ring wakes all callers
// that sleep.
void Node::sleep_without_news(Time deadline) {
  doorbell().note_callers_sleep();
  for (Transport* transport : transports_) transport->arm();
  const uint32_t value = doorbell().value();
  if (has_news() || !doorbell().callers_sleep()) return;
  tell_sleepers();
  const Time until = std::min(deadline, timer());
  asleep_until_ = asleep_ == 0 ? until : std::min(asleep_until_, until);
  add_under_lock(asleep_, 1);
  lock_.unlock();
  doorbell().sleep(value, Doorbell::callers, until);
  lock_.lock();
  add_under_lock(asleep_, -1);
}

// Called when the driving caller leaves and all waiting callers sleep: from now on the bell wakes them. This caller
// takes packets that have arrived meanwhile.
void Node::leave_to_sleepers() {
  doorbell().note_callers_sleep();
  for (Transport* transport : transports_) transport->arm();
  asleep_until_ = Time::never();
  if (has_news()) drive();
  if (has_news()) doorbell().wake_callers();
}

// Called when no caller waits any more. One may come soon, so the helper takes over only after a while without calls.
void Node::note_polled() { was_polled_.store(true, std::memory_order_relaxed); }

}  // namespace spinloom::live
