// Resource - a unit that serves one request after the other. Channels - several equal resources side by side.
//
// Contract: serve(now, duration) returns when service of that request ends; requests are served in the order of the
//   calls. Each request to Channels takes the lowest-numbered idle resource, or else the one that is free first.
// Invariants: (1) a resource never serves two requests at once; (2) busy() is the sum of durations served.
// Threads: one owner. Time: virtual, an argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace spinloom::simulated {

struct Service {
  Time start;
  Time end;
};

class Resource {
 public:
  Service serve(Time now, Time duration) {
    const Time start = std::max(now, free_at_);
    free_at_ = start + duration;
    busy_ += duration;
    return {start, free_at_};
  }
  [[nodiscard]] Time free_at() const { return free_at_; }
  [[nodiscard]] Time busy() const { return busy_; }

 private:
  Time free_at_{};
  Time busy_{};
};

class Channels {
 public:
  explicit Channels(uint32_t count) : channels_(count) {}

  Service serve(Time now, Time duration) {
    Resource* chosen = &channels_.front();
    for (Resource& channel : channels_) {
      if (channel.free_at() <= now) return channel.serve(now, duration);  // idle: no need to look further
      if (channel.free_at() < chosen->free_at()) chosen = &channel;
    }
    return chosen->serve(now, duration);
  }
  [[nodiscard]] Time busy() const {
    Time sum{};
    for (const Resource& channel : channels_) sum += channel.busy();
    return sum;
  }

 private:
  std::vector<Resource> channels_;
};

}  // namespace spinloom::simulated
