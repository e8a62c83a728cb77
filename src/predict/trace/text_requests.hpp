// TextRequests - which call ended which request, of one rank's calls: a text trace has the places of the handles only.
//
// Contract: the caller reports the calls in their order, by their numbers; then solve() gives each call its slots. A
//   request ends in the first Wait or Waitall that names its place. If there is none before the place is used again,
//   the request ended in the last call that named it, because outcomes of tests, and of waits for some, are not
//   written.
// Invariants: (1) slots are the lowest free ones, as the recorder gives them.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

class TextRequests {
 public:
  // `handle_bytes`: the size of an MPI_Request of the traced MPI, 8 where it is a pointer and 4 where it is an int.
  explicit TextRequests(uint64_t handle_bytes) : handle_bytes_(handle_bytes) {}

  void make(uint32_t call, uint64_t place, bool is_persistent);
  void start(uint32_t call, uint64_t place, int64_t count);
  void complete(uint32_t call, uint64_t place, int64_t count, bool is_certain);
  void cancel(uint32_t call, uint64_t place);
  void free(uint32_t call, uint64_t place);

  // Returns the slots of each call, after all calls have been reported.
  [[nodiscard]] std::vector<std::vector<uint32_t>> solve(uint32_t calls);
  [[nodiscard]] uint64_t never_ended() const { return never_ended_; }  // requests that no call named

 private:
  struct Request {
    uint32_t last_naming_call = none;  // the last call that may have ended it
    bool is_persistent = false;
    bool is_active = false;
  };
  // A call that makes, names, ends or frees a request.
  struct RequestUse {
    enum class Kind : uint8_t { makes, names, ends, frees };
    uint32_t call = 0;
    Kind kind = Kind::makes;
    uint32_t request = 0;
  };
  // Returns the requests in `count` places from `place` on, each with its place.
  [[nodiscard]] std::vector<std::pair<uint64_t, uint32_t>> requests_at(uint64_t place, int64_t count) const;
  void end(uint32_t request);
  void reuse_place(uint32_t call, uint64_t place);

  uint64_t handle_bytes_;
  std::map<uint64_t, uint32_t> by_place_;  // the numbers of the requests that are open, by the place of their handle
  std::vector<Request> requests_;
  std::vector<RequestUse> uses_;
  uint64_t never_ended_ = 0;
};

}  // namespace spinloom::trace
