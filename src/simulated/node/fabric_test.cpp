// Transfers of a clustered NIC, alone and side by side, compared with the public PsPIN RTL.
#include "simulated/node/fabric.hpp"

#include <gtest/gtest.h>

namespace spinloom::simulated {
namespace {

Profile pspin() {
  Profile profile;
  profile.hpu.core = "pulp";
  profile.hpu.clock = 1'000'000'000;
  profile.pulp.clusters = 4;
  profile.pulp.port_width = profile.pulp.dma_width = 64;
  profile.pulp.port_latency = 4;
  profile.pulp.dma_setup = 1;
  profile.pulp.dma_latency = 27;
  profile.pulp.send_latency = 12;
  return profile;
}

Time cycles(int64_t count) { return Rate::cycle_of(1'000'000'000).time_of_cycles(count); }

TEST(Fabric, APacketIsInPacketMemoryAfterFourCyclesAndItsBytes) {
  const Profile profile = pspin();
  for (const int64_t bytes : {64, 256, 1024}) {
    EXPECT_EQ(Fabric(profile, 32).packet_in(cycles(0), bytes).end, cycles(4 + bytes / 64)) << bytes;
  }
}

TEST(Fabric, BytesFromTheHostCrossTheChip) {
  const Profile profile = pspin();
  for (const int64_t bytes : {64, 256, 512, 1024}) {
    EXPECT_EQ(Fabric(profile, 32).from_host(cycles(100), bytes), cycles(100 + 27 + bytes / 64)) << bytes;
  }
  Fabric busy(profile, 32);  // one port for all clusters
  EXPECT_EQ(busy.from_host(cycles(0), 1024), cycles(43));
  EXPECT_EQ(busy.from_host(cycles(0), 1024), cycles(59));
}

TEST(Fabric, WhatAHandlerSendsLeavesBehindWhatGoesToTheHost) {
  const Profile profile = pspin();
  for (const int64_t bytes : {64, 256, 512, 1024}) {
    EXPECT_EQ(Fabric(profile, 32).send(cycles(0), bytes), cycles(12 + bytes / 64)) << bytes;
  }
  Fabric busy(profile, 32);
  const Service read = busy.to_host(cycles(0), 0, 1024);
  EXPECT_EQ(read.end, cycles(1 + 16 + 27));
  EXPECT_EQ(busy.send(cycles(0), 64), cycles(17 + 1 + 12));
}

TEST(Fabric, OtherCoresHaveNoneOfThis) {
  Profile profile = pspin();
  profile.hpu.core = "a15";
  profile.memory.channels_per_hpu = 2;
  Fabric fabric(profile, 4);
  EXPECT_EQ(fabric.from_host(cycles(5), 1024), cycles(5));
  EXPECT_EQ(fabric.send(cycles(5), 1024), cycles(5));
}

}  // namespace
}  // namespace spinloom::simulated
