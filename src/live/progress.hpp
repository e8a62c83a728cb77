// Progress - the threads that keep a node going when its program does not call it.
//
// Contract: the helper drives the node when nobody waits and the doorbell rings; the watcher sees peers' processes end.
//   Both sleep while there is nothing to do. watch() may be called at any time, under the node's lock.
// Invariants: (1) the helper never drives while a caller does; (2) after the destructor neither runs.
// Threads: its own two. Time: the monotonic clock.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "live/node.hpp"

namespace spinloom::live {

class Progress {
 public:
  // What follows from a descriptor that has become readable; called by the watcher, without the lock.
  using Readable = std::function<void(uint64_t tag)>;

  [[nodiscard]] static Result<std::unique_ptr<Progress>> start(Node& node, Readable readable);
  ~Progress();

  // Ends both threads.
  void stop();
  // Once; again by another watch().
  void watch(int descriptor, uint64_t tag);
  // Under the lock, when a call ends: the helper is told of what is left to do.
  void look_after();

 private:
  Progress(Node& node, Readable readable, int events, int stop);
  void begin();
  void help();
  void drive_while_alone(bool rung);
  void watch_all();
  [[nodiscard]] Time next_look();
  [[nodiscard]] Time next_look_inside();

  Node& node_;
  Readable readable_;
  uint32_t heard_;  // rings that the helper has looked after; those since before its thread began are news to it
  int events_;
  int stop_event_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> attentive_{true};  // the helper is awake, or will be within a pause
  std::atomic<int64_t> wakes_at_ps_{0};  // when it wakes by itself, where it is not
  std::thread helper_;
  std::thread watcher_;
};

}  // namespace spinloom::live
