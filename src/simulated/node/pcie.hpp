// Pcie - the link between NIC and host memory, with the costs of transfers. Each direction is one resource.
//
// Contract: a write of n bytes is cut into packets of at most write_payload bytes, each with
//   write_overhead bytes of headers; the link is busy for all of them, the last byte lands `latency`
//   later. T = (n + ceil(n / payload) * overhead) * byte_time, and one packet when n = 0.
//   Source: SC'19 paper, section 5.1 (packet overheads and 128b/130b are counted; the overhead is proposed).
// Invariants: (1) writes are ordered: a later one never lands before an earlier one.
// Threads: one owner. Time: virtual.
#pragma once

#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"

namespace spinloom::simulated {

class Pcie {
 public:
  explicit Pcie(const Profile& profile) : pcie_(profile.pcie) {}

  // NIC to host. The service ends when the last byte has left the NIC.
  Service write(Time now, int64_t bytes) { return to_host_.serve(now, write_duration(bytes)); }
  // Host to NIC: commands, and the bytes that they carry.
  Service command(Time now, int64_t bytes) { return to_nic_.serve(now, write_duration(bytes)); }

  [[nodiscard]] Time write_duration(int64_t bytes) const {
    const int64_t packets = bytes == 0 ? 1 : div_ceil(bytes, pcie_.write_payload);
    return pcie_.byte_time.time_of(Bytes{bytes + packets * pcie_.write_overhead});
  }
  [[nodiscard]] Time latency() const { return pcie_.latency; }
  [[nodiscard]] Time to_host_busy() const { return to_host_.busy(); }

 private:
  decltype(Profile::pcie) pcie_;
  Resource to_host_;
  Resource to_nic_;
};

}  // namespace spinloom::simulated
