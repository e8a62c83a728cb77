// Bandwidth of a clustered NIC's memories; each test states the algebra first.
#include "app/studies/bandwidth.hpp"

#include <gtest/gtest.h>

namespace spinloom::app {
namespace {

BandwidthConfig clusters_of_eight() {
  BandwidthConfig config;
  config.profile.hpu.core = "pulp";
  config.profile.hpu.clock = 1'000'000'000;
  config.profile.pulp.clusters = 4;
  config.profile.pulp.device = 1;
  config.profile.pulp.dma_width = 8;
  config.profile.pulp.port_width = 32;
  config.profile.pulp.dma_setup = 10;
  config.profile.pulp.dma_latency = 27;
  config.total_bytes = 1 << 20;
  return config;
}

TEST(Bandwidth, OneCoreMovesOneBlockAfterTheOther) {
  // T = 7 + (10 + b/8) + 7 + (10 + b/8) + 27 cycles a block.
  BandwidthConfig config = clusters_of_eight();
  config.hpus = 1;
  config.block_bytes = 256;
  config.total_bytes = 10 * 256;
  const auto result = run_bandwidth(config);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->blocks, 10u);
  EXPECT_EQ(result->time_ps, 10 * (7 + 42 + 7 + 42 + 27) * 1000);
}

TEST(Bandwidth, EightCoresAClusterKeepItsEngineBusy) {
  // A cluster's engine takes 10 + b/8 cycles a block and direction. n blocks on 4 clusters take at least n/4 times
  // that, plus the first copy in and the last block's latency (7 + in + 7 and 27); and, because all clusters come to
  // the port at once, three blocks of the other clusters through the port.
  BandwidthConfig config = clusters_of_eight();
  for (const uint64_t block : {256u, 512u, 4096u, 16384u}) {
    config.block_bytes = block;
    const auto result = run_bandwidth(config);
    ASSERT_TRUE(result) << result.error().message;
    const auto blocks = static_cast<int64_t>(config.total_bytes / block);
    const int64_t engine = 10 + static_cast<int64_t>(block) / 8;
    EXPECT_EQ(result->time_ps,
              (7 + engine + 7 + blocks / 4 * engine + 27 + 3 * static_cast<int64_t>(block) / 32) * 1000)
        << block;
  }
}

TEST(Bandwidth, RefusesWhatItCannotMove) {
  BandwidthConfig config = clusters_of_eight();
  config.block_bytes = 3;
  EXPECT_EQ(run_bandwidth(config).error().code, Code::invalid);
  config = clusters_of_eight();
  config.profile.hpu.core = "a15";
  EXPECT_EQ(run_bandwidth(config).error().code, Code::unsupported);
}

}  // namespace
}  // namespace spinloom::app
