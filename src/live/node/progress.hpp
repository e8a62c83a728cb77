// Progress - two threads that drive a node when its program does not call it.
//
// Contract: the helper drives the node when the doorbell rings or a timer of the node has come, and no caller waits in
//   the node or has looked just before. The watcher says when a watched descriptor has become readable: that of a
//   peer's process, which has then ended, or of a socket. Both sleep while there is nothing to do; but the helper wakes
//   now and then while callers look, and with a Tick the watcher wakes twice a second. watch() may be called by any
//   thread at any time.
// Invariants: (1) the helper never drives while a caller does; (2) after the destructor neither thread runs.
// Threads: its own two. Time: the monotonic clock.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "live/node/node.hpp"

namespace spinloom::live {

class Progress {
 public:
  // Called by the watcher, without the lock, when a descriptor has become readable; `tag` is that of watch().
  using Readable = std::function<void(uint64_t tag)>;

  // Called by the watcher, without the lock, about every half second. An empty Tick is never called.
  using Tick = std::function<void()>;

  [[nodiscard]] static Result<std::unique_ptr<Progress>> start(Node& node, Readable readable, Tick tick = {});
  ~Progress();

  // Ends both threads.
  void stop();
  // Watches the descriptor until it is readable once; another watch() watches it again.
  void watch(int descriptor, uint64_t tag);
  // Called under the lock when a call ends: tells the helper what is left to do.
  void note_call_end();

 private:
  Progress(Node& node, Readable readable, Tick tick, int events, int stop);
  void start_threads();
  void run_helper();
  void drive_while_alone(bool rung);
  void run_watcher();
  [[nodiscard]] Time next_look();
  [[nodiscard]] Time next_look_inside();

  Node& node_;
  Readable readable_;
  Tick tick_;
  uint32_t rings_seen_;  // rings that the helper has seen; at first, those before its thread began
  int events_;
  int stop_event_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> attentive_{true};  // the helper is awake, or will wake within a pause
  std::atomic<int64_t> wakes_at_ps_{0};  // the time when the helper wakes by itself, if it is not attentive
  std::thread helper_;
  std::thread watcher_;
};

}  // namespace spinloom::live
