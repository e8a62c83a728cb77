// spinloom._core: bandwidth of a clustered NIC's memories (SC'19 datatypes paper, figure 9c).
#include "app/python/bindings_profile.hpp"
#include "app/python/bindings_support.hpp"
#include "app/studies/bandwidth.hpp"

namespace spinloom::app {
namespace {

nb::dict nic_bandwidth(const nb::dict& profile, uint64_t block_bytes, uint64_t total_bytes, uint32_t hpus,
                       uint64_t seed) {
  BandwidthConfig config;
  config.profile = profile_of(profile);
  config.hpus = hpus;
  config.block_bytes = block_bytes;
  config.total_bytes = total_bytes;
  config.seed = seed;
  Result<BandwidthResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return run_bandwidth(config);
  }();
  const BandwidthResult result = unwrap(std::move(outcome));
  nb::dict out;
  out["bytes"] = total_bytes;
  out["blocks"] = result.blocks;
  out["time_ps"] = result.time_ps;
  out["checked"] = true;  // run_bandwidth reports numbers for compared bytes only
  return out;
}

}  // namespace

void bind_bandwidth(nb::module_& module) {
  module.def("nic_bandwidth", &nic_bandwidth, nb::arg("profile"), nb::arg("block_bytes"),
             nb::arg("total_bytes") = uint64_t{16} << 20, nb::arg("hpus") = 32, nb::arg("seed") = 1,
             "Modelled time to move blocks from L2 over the clusters' memories to the host, bytes compared.");
}

}  // namespace spinloom::app
