// Pair process - names a process and its machine, and finds out if the process lives. For the floor only.
//
// Contract: here() names this process: machine (the kernel's boot id), namespace of process ids, id, time of its start.
//   PairWatch holds a process of this machine by a descriptor, where the kernel allows it and both are in one namespace
//   of process ids; ended() is true once that process has ended, and false where nothing is known.
// Threads: any. Time: host time.
#pragma once

#include <cstdint>

namespace spinloom::gpu {

struct PairProcess {
  char machine[40] = {};
  uint64_t id_space = 0;
  uint64_t id = 0;
  uint64_t start_ticks = 0;

  static PairProcess current();
  [[nodiscard]] bool same_machine(const PairProcess& other) const;
};

class PairWatch {
 public:
  PairWatch() = default;
  explicit PairWatch(const PairProcess& peer);
  PairWatch(const PairWatch&) = delete;
  PairWatch& operator=(PairWatch&& other) noexcept;
  ~PairWatch();

  [[nodiscard]] bool ended() const;

 private:
  int descriptor_ = -1;
};

}  // namespace spinloom::gpu
