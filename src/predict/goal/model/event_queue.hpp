// EventQueue - the events to come, in order of (time, number).
//
// Contract: add() makes an event, push() gives it a time, pop() gives the first one; release() gives its place back.
//   Times may be pushed that lie before the last one popped.
// Invariants: (1) events that are pushed for one time in order of their numbers are a run, a chain that has one place
//   in the heap; several runs may have the same time, so that a run that is no longer known is merely closed; (2) an
//   event is in one run at most, and its `next` is the run's while it is; its number does not change either.
// Threads: one owner. Time: modelled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/large_vector.hpp"

namespace spinloom::goal {

inline constexpr uint32_t none = UINT32_MAX;

enum class EventKind : uint8_t {
  // The kinds of our own model stand in the order in which events that are ready at one moment begin.
  enter,  // a packet enters the network
  travel,  // a packet goes on to the next switch
  leave,
  arrive,
  complete,
  served,  // the data of a get have left
  first_came,  // one of several operations has ended that another one waits for
  arrived,  // an `arrived` begins to wait
  send,
  receive,
  compute,
  deliver,
  // The engine of LogGOPSim's rules has sends, receives, computations and this.
  message
};

// An eager message; the request, the answer and the data of a rendezvous; for one-sided operations the bytes to a
// target, the request of a get, and the bytes that come back.
enum class MessageKind : uint8_t { eager, request, answer, data, put, get_request, reply };
// True for messages without data of their own.
[[nodiscard]] constexpr bool is_control(MessageKind message_kind) {
  return message_kind == MessageKind::request || message_kind == MessageKind::answer ||
         message_kind == MessageKind::get_request;
}

struct Event {
  uint64_t number = 0;  // events of one time come in the order of their numbers
  uint32_t next = none;  // the next event of the chain that this one is in
  uint32_t rank = 0;  // the rank at which it happens
  uint32_t operation = 0;  // the operation that it begins or ends; for a message, the one that sent it
  uint32_t source = 0;  // the rank that a message comes from
  uint32_t shape = 0;  // the number of the operation's Shape
  EventKind kind = EventKind::compute;
  bool is_leader = false;  // the first of the events that wait for the same resource (Waiters)
  MessageKind message_kind = MessageKind::eager;
};
static_assert(sizeof(Event) == 32);

class EventQueue {
 public:
  struct TimedEvent {
    uint64_t time;
    uint32_t event;
  };

  static constexpr uint32_t kind_shift = 59;

  [[nodiscard]] Event& operator[](uint32_t event) { return events_[event]; }
  [[nodiscard]] bool is_empty() const { return heap_.empty(); }

  // Returns the time of the first event; there must be one.
  [[nodiscard]] uint64_t next_time() const { return heap_.front().time; }

  [[nodiscard]] uint32_t add() {
    if (first_free_ == none) {
      events_.emplace_back();
      return static_cast<uint32_t>(events_.size() - 1);
    }
    return std::exchange(first_free_, events_[first_free_].next);
  }

  void release(uint32_t event) {
    events_[event].next = first_free_;
    first_free_ = event;
  }

  void push(uint64_t time, uint32_t event) {
    Event& pushed = events_[event];
    pushed.next = none;
    Run& run = run_of(time, pushed.number);
    if (run.last != none && run.time == time) {
      Event& last = events_[run.last];
      if (last.number < pushed.number) {
        last.next = event;
        run.last = event;
        return;
      }
    } else {
      run = {time, event};
    }
    sift_up({time, pushed.number, event});
  }

  [[nodiscard]] TimedEvent pop() {
    Entry& first = heap_.front();
    const TimedEvent popped{first.time, first.head};
    const uint32_t next = events_[first.head].next;
    if (next != none) {
      first.head = next;
      first.number = events_[next].number;
      sift_down(first);
      return popped;
    }
    if (Run& run = run_of(popped.time, first.number); run.last == popped.event) run.last = none;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
    return popped;
  }

  // Returns the event that pop() will probably give after the next one; without such an event, the next one; null if
  // the queue is empty. Prefetches the event behind it.
  [[nodiscard]] const Event* peek_ahead() const {
    if (heap_.empty()) return nullptr;
    const Event* const first = &events_[heap_.front().head];
    if (first->next == none) return first;
    const Event* const second = &events_[first->next];
    if (second->next != none) __builtin_prefetch(&events_[second->next]);
    return second;
  }

 private:
  struct Entry {
    uint64_t time;
    uint64_t number;
    uint32_t head;

    [[nodiscard]] bool is_before(const Entry& other) const {
      return time != other.time ? time < other.time : number < other.number;
    }
  };
  struct Run {
    uint64_t time = 0;
    uint32_t last = none;
  };

  // The upper bits of numbers are kinds of events: each kind has its own runs.
  [[nodiscard]] Run& run_of(uint64_t time, uint64_t number) {
    return runs_[(time + (number >> kind_shift)) * 0x9e37'79b9'7f4a'7c15 >> 56];
  }

  void sift_up(const Entry& entry) {
    size_t at = heap_.size();
    heap_.push_back(entry);
    while (at > 0) {
      const size_t parent = (at - 1) / 4;
      if (!entry.is_before(heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = entry;
  }

  // Puts `entry` in the place of the first.
  void sift_down(Entry entry) {
    const size_t size = heap_.size();
    size_t at = 0;
    for (;;) {
      const size_t child = 4 * at + 1;
      if (child >= size) break;
      size_t least = child;
      const size_t end = child + 4 < size ? child + 4 : size;
      for (size_t one = child + 1; one < end; ++one) {
        if (heap_[one].is_before(heap_[least])) least = one;
      }
      if (!heap_[least].is_before(entry)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = entry;
  }

  LargeVector<Event> events_;
  LargeVector<Entry> heap_;  // the children of i are 4 i + 1 to 4 i + 4
  std::array<Run, 256> runs_{};
  uint32_t first_free_ = none;
};

}  // namespace spinloom::goal
