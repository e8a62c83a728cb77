// Handing over the care of a process's channels: a model of bell, helper and callers, explored exhaustively.
//
// Each step below is one access to shared state in doorbell.hpp, progress.cpp or node.cpp, under the lock or without
// it, in the order of that code. Any thread may take the next step. No state may be reachable in which nobody will
// ever look for a message. A sender's store may reach the channel later than the sender's look at the bell
// (processors have store buffers), but no later than the receiver's remote fence.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spinloom::live {
namespace {

enum Mode : uint8_t { nobody, helper_sleeps, callers_sleep };  // Doorbell::Sleeper
enum Until : uint8_t { now, pause, never };  // the end of the helper's sleep
enum Owner : uint8_t { free, helper_owns, caller_owns };  // caller_owns + 1 means the second caller

// The sender's next step.
enum SenderAt : uint8_t { sends, looks_at_bell, rings };

// The helper's next step: help(), next_look(), next_look_inside(), drive_while_alone().
enum HelperAt : uint8_t {
  takes_active,
  notes_pause,
  locks_to_look,
  looks,
  fences,
  checks_news,
  unlocks,
  reads_bell,
  decides,
  sleeps,
  locks_to_drive,
  begins_to_drive,
  loops,
  drives,
  idles,
  idle_fences,
  idle_checks,
  yields,
  relocks
};

// A caller's next step. A caller that is `at_once` makes calls for ever that are ready when they begin.
enum CallerAt : uint8_t {
  chooses,
  locks_at_once,
  locks_poll,
  polls,
  ends,
  locks_wait,
  waits,
  relocks_wait,
  doze_fences,
  doze_reads,
  doze_checks,
  asleep,
  woken,
  leaves,
  stay_fences,
  at_once
};

struct State {
  uint8_t mode = helper_sleeps, rings = 0;  // the bell
  uint8_t visible = 0, buffered = 0, taken = 0;  // messages
  uint8_t polled = 0, waiting = 0, dozing = 0, changes = 0, told = 0;  // Node
  uint8_t attentive = 1, wakes = never;  // Progress
  uint8_t owner = free;
  uint8_t sender = sends, unsent = 2;
  uint8_t helper = takes_active, value = 0, heard = 0, until = never, rung = 0, idle = 0;
  struct Caller {
    uint8_t at = chooses, value = 0, seen = 0, calls = 0, patient = 0;
  } callers[2];

  [[nodiscard]] bool news() const { return visible != taken; }
  void drive() {
    if (news()) changes = taken = visible;
  }
  void fence() {
    visible += buffered;
    buffered = 0;
  }
  void wake(uint8_t who) {
    if ((who & helper_sleeps) != 0 && helper == sleeps) helper = takes_active;
    for (Caller& caller : callers) {
      if ((who & callers_sleep) != 0 && caller.at == asleep) caller.at = woken;
    }
  }
  void ring_all(uint8_t who) {
    rings = static_cast<uint8_t>((rings + 1) % 8);
    wake(who);
  }
  void tell_sleepers() {
    const bool changed = told != changes;
    told = changes;
    if (dozing > 0 && changed) ring_all(callers_sleep);
  }
  void look_after() {
    if (attentive != 0 || waiting > 0 || polled == 0 || wakes != never) return;
    attentive = 1;
    ring_all(helper_sleeps | callers_sleep);
  }
};
static_assert(sizeof(State) == 31, "no padding: states are compared byte by byte");

bool operator==(const State& a, const State& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
struct Hash {
  size_t operator()(const State& state) const {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&state), sizeof state});
  }
};

struct Variant {
  bool news_when_listening = true;  // next_look_inside() looks for news even if the helper listened before
  uint8_t caller_count = 1;
  uint8_t messages = 2;
  uint8_t calls = 2;
};

class Explorer {
 public:
  explicit Explorer(const Variant& variant) : variant_(variant) {}

  // The steps that lead to a message that nobody will look for; empty if there are none.
  std::vector<std::string> explore() {
    State first;
    first.unsent = variant_.messages;
    for (uint8_t i = 0; i < 2; ++i) {
      first.callers[i].calls = variant_.calls;
      if (i >= variant_.caller_count) first.callers[i].at = at_once;
    }
    add(first, "begin");
    while (!open_.empty()) {
      from_ = open_.front();
      open_.pop_front();
      const size_t known = known_.size();
      const bool any = step_all();
      if (!any && from_.news()) return path_to(from_);
      EXPECT_GE(known_.size(), known);
    }
    return {};
  }
  [[nodiscard]] size_t states() const { return known_.size(); }

 private:
  struct Origin {
    State from;
    const char* step;
  };

  void add(const State& to, const char* step) {
    if (known_.emplace(to, Origin{from_, step}).second) open_.push_back(to);
  }
  // Adds the states that one step of any thread leads to. Returns whether any step changes something.
  bool step_all() {
    moved_ = false;
    sender();
    helper();
    for (uint8_t i = 0; i < variant_.caller_count; ++i) caller(i);
    return moved_;
  }
  void go(const State& to, const char* step) {
    if (to == from_) return;
    moved_ = true;
    add(to, step);
  }

  void sender() {
    State to = from_;
    if (from_.buffered > 0) {
      to.fence();
      go(to, "sender: its store arrives");
      to = from_;
    }
    switch (from_.sender) {
      case sends:
        if (from_.unsent == 0) return;
        --to.unsent;
        ++to.buffered;
        to.sender = looks_at_bell;
        return go(to, "sender: publishes");
      case looks_at_bell:
        to.sender = from_.mode == nobody ? sends : rings;
        return go(to, from_.mode == nobody ? "sender: somebody polls" : "sender: somebody sleeps");
      default: {
        to.fence();  // a locked instruction
        const uint8_t woken_mode = to.mode;
        to.mode = nobody;
        to.sender = sends;
        to.ring_all(woken_mode);
        return go(to, "sender: rings");
      }
    }
  }

  void helper() {
    State to = from_;
    switch (from_.helper) {
      case takes_active: {
        const bool active = from_.polled != 0 || from_.waiting > from_.dozing;
        to.polled = 0;
        to.helper = active ? notes_pause : locks_to_look;
        return go(to, active ? "helper: somebody calls" : "helper: nobody has called");
      }
      case notes_pause:
        to.attentive = 1;
        to.until = pause;
        to.helper = reads_bell;
        return go(to, "helper: will pause");
      case locks_to_look:
        if (from_.owner != free) return;
        to.owner = helper_owns;
        to.helper = looks;
        return go(to, "helper: locks to look");
      case looks:
        to.until = never;
        if (from_.waiting > 0) {
          to.helper = unlocks;
        } else if (from_.mode != helper_sleeps) {
          to.mode = helper_sleeps;
          to.helper = fences;
        } else {
          to.helper = variant_.news_when_listening ? checks_news : unlocks;
        }
        return go(to, "helper: looks who listens");
      case fences:
        to.fence();
        to.helper = checks_news;
        return go(to, "helper: fences");
      case checks_news:
        to.until = from_.news() ? now : never;
        to.helper = unlocks;
        return go(to, "helper: checks for news");
      case unlocks:
        to.wakes = from_.until;
        to.attentive = 0;
        to.owner = free;
        to.helper = reads_bell;
        return go(to, "helper: unlocks");
      case reads_bell:
        to.value = from_.rings;
        to.helper = decides;
        return go(to, "helper: reads the bell");
      case decides:
        if (from_.value == from_.heard && from_.until != now) {
          to.helper = from_.rings == from_.value ? sleeps : takes_active;
          go(to, "helper: sleeps");
        }
        if (from_.value != from_.heard || from_.until != never) {  // the bell has rung, or the time is over
          to = from_;
          to.rung = from_.value != from_.heard ? 1 : 0;
          to.heard = from_.value;
          to.helper = locks_to_drive;
          go(to, "helper: goes to drive");
        }
        return;
      case sleeps:
        if (from_.until == never) return;
        to.helper = takes_active;
        return go(to, "helper: its pause ends");
      case locks_to_drive:
        if (from_.owner != free) return;
        to.owner = helper_owns;
        to.helper = begins_to_drive;
        return go(to, "helper: locks to drive");
      case begins_to_drive:
        to.idle = 0;
        if (from_.rung == 0 && (from_.waiting > 0 || from_.polled != 0 || !from_.news())) return release(to);
        if (from_.rung == 0) to.drive();
        to.helper = loops;
        return go(to, "helper: begins to drive");
      case loops:
        if (from_.waiting > 0 || from_.polled != 0) return release(to);
        if (from_.idle == 0) to.mode = nobody;
        to.helper = drives;
        return go(to, "helper: polls");
      case drives:
        to.idle = from_.news() ? 0 : 1;
        to.drive();
        if (to.idle == 0) to.tell_sleepers();
        to.helper = to.idle == 0 ? yields : idles;
        return go(to, "helper: drives");
      case idles:
        to.helper = yields;
        go(to, "helper: polls on");
        to.mode = helper_sleeps;
        to.helper = idle_fences;
        return go(to, "helper: stops polling");
      case idle_fences:
        to.fence();
        to.helper = idle_checks;
        return go(to, "helper: fences, having polled");
      case idle_checks:
        if (!from_.news()) return release(to);
        to.idle = 0;
        to.helper = yields;
        return go(to, "helper: finds news after all");
      case yields:
        to.helper = loops;
        go(to, "helper: keeps the lock");
        to.owner = free;
        to.helper = relocks;
        return go(to, "helper: lets others in");
      default:
        if (from_.owner != free) return;
        to.owner = helper_owns;
        to.helper = loops;
        return go(to, "helper: has the lock again");
    }
  }
  void release(State to) {
    to.tell_sleepers();
    to.owner = free;
    to.helper = takes_active;
    go(to, "helper: leaves it");
  }

  void caller(uint8_t i) {
    State to = from_;
    State::Caller& me = to.callers[i];
    const State::Caller& was = from_.callers[i];
    const auto owns = static_cast<uint8_t>(caller_owns + i);
    const auto lock = [&](CallerAt next, const char* step) {
      if (from_.owner != free) return false;
      to.owner = owns;
      me.at = next;
      if (step != nullptr) go(to, step);
      return true;
    };
    switch (was.at) {
      case chooses:
        if (was.calls == 0) {
          me.at = at_once;
          return go(to, "caller: calls only what is ready at once");
        }
        --me.calls;
        for (const CallerAt call : {locks_at_once, locks_poll, locks_wait}) {
          for (const uint8_t patient : {uint8_t{0}, uint8_t{1}}) {
            me.at = call;
            me.patient = call == locks_wait ? patient : 0;
            go(to, "caller: begins a call");
          }
        }
        return;
      case at_once:
        if (from_.owner != free) return;
        to.tell_sleepers();
        to.look_after();
        return go(to, "caller: a call that is ready at once");
      case locks_at_once: static_cast<void>(lock(ends, "caller: calls what is ready")); return;
      case locks_poll:
        if (!lock(polls, nullptr)) return;
        if (from_.dozing == 0) to.mode = nobody;
        return go(to, "caller: polls");
      case polls:
        to.drive();
        to.polled = 1;
        me.at = ends;
        return go(to, "caller: drives");
      case ends:
        to.tell_sleepers();
        to.look_after();
        to.owner = free;
        me.at = chooses;
        return go(to, "caller: ends its call");
      case locks_wait:
        if (!lock(waits, nullptr)) return;
        me.seen = from_.changes;
        ++to.waiting;
        to.mode = nobody;
        return go(to, "caller: waits");
      case waits:
        if (from_.changes != was.seen || from_.news()) {
          to.drive();
          me.at = leaves;
          return go(to, "caller: has what it waited for");
        }
        me.at = doze_fences;
        to.mode = callers_sleep;
        go(to, "caller: dozes");
        to = from_;
        to.owner = free;
        me.at = relocks_wait;
        go(to, "caller: lets others in");
        if (was.patient != 0) return;
        to = from_;
        me.at = leaves;
        return go(to, "caller: its time is over");
      case relocks_wait: static_cast<void>(lock(waits, "caller: has the lock again")); return;
      case doze_fences:
        to.fence();
        me.at = doze_reads;
        return go(to, "caller: fences");
      case doze_reads:
        me.value = from_.rings;
        me.at = doze_checks;
        return go(to, "caller: reads the bell");
      case doze_checks:
        if (from_.news() || from_.mode != callers_sleep) {
          me.at = leaves;
          return go(to, "caller: does not sleep");
        }
        to.tell_sleepers();
        ++to.dozing;
        to.owner = free;
        me.at = to.rings == was.value ? asleep : woken;
        return go(to, "caller: sleeps");
      case asleep:
        if (was.patient != 0) return;
        me.at = woken;
        return go(to, "caller: its time is over, asleep");
      case woken:
        if (!lock(leaves, nullptr)) return;
        --to.dozing;
        return go(to, "caller: wakes");
      case leaves:
        --to.waiting;
        me.at = ends;
        if (was.patient != 0 && from_.changes == was.seen) {  // the call looks again
          ++to.waiting;
          to.mode = nobody;
          me.at = waits;
          return go(to, "caller: waits on");
        }
        if (to.waiting == 0) {
          to.polled = 1;
        } else if (to.waiting == to.dozing) {
          to.mode = callers_sleep;
          me.at = stay_fences;
        }
        if (me.at == ends) to.tell_sleepers();
        return go(to, "caller: leaves");
      default:  // stay_fences
        to.fence();
        to.drive();
        to.tell_sleepers();
        me.at = ends;
        return go(to, "caller: leaves those that sleep the bell");
    }
  }

  [[nodiscard]] std::vector<std::string> path_to(const State& state) {
    std::deque<std::string> steps;
    for (State at = state;;) {
      const Origin& origin = known_.at(at);
      steps.emplace_front(origin.step);
      if (std::string_view(origin.step) == "begin") break;
      at = origin.from;
    }
    return {steps.begin(), steps.end()};
  }

  Variant variant_;
  State from_;
  bool moved_ = false;
  std::unordered_map<State, Origin, Hash> known_;
  std::deque<State> open_;
};

std::string lines(const std::vector<std::string>& steps) {
  std::string all;
  for (const std::string& step : steps) all += step + "\n";
  return all;
}

TEST(HandOver, NoMessageIsForgottenByOneCaller) {
  Explorer explorer({.caller_count = 1, .messages = 2, .calls = 2});
  EXPECT_EQ(lines(explorer.explore()), "");
  EXPECT_GT(explorer.states(), 100'000U);
}

TEST(HandOver, NoMessageIsForgottenByTwoCallers) {
  Explorer explorer({.caller_count = 2, .messages = 1, .calls = 1});
  EXPECT_EQ(lines(explorer.explore()), "");
  EXPECT_GT(explorer.states(), 100'000U);
}

// The explorer finds the error that the code once had, which made clients hang.
TEST(HandOver, AHelperThatTrustsThatItListensForgetsOne) {
  Explorer explorer({.news_when_listening = false, .caller_count = 1, .messages = 1, .calls = 2});
  EXPECT_FALSE(explorer.explore().empty());
}

}  // namespace
}  // namespace spinloom::live
