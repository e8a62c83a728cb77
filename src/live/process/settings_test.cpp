// Settings of the live library from variables, and the warnings about wrong ones.
#include "live/process/settings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spinloom::process {
namespace {

Settings read(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return read_settings(environment.data());
}

TEST(Settings, StandAsTheyAreWhereNothingIsSet) {
  const Settings settings = read({"PATH=/bin", "SPINLOOM", "SPINLOOMX=1", "X=SPINLOOM_COPY=two-copy"});
  EXPECT_TRUE(settings.warnings.empty());
  EXPECT_EQ(settings.copy, live::CopyMode::automatic);
  EXPECT_EQ(settings.transport, TransportChoice::automatic);
  EXPECT_EQ(settings.hpus, 4u);
  EXPECT_EQ(settings.spin_us, 100u);
  EXPECT_TRUE(read_settings(nullptr).warnings.empty());
}

TEST(Settings, TakeWhatTheySay) {
  const Settings settings =
      read({"SPINLOOM_COPY=two-copy", "SPINLOOM_TRANSPORT=udp", "SPINLOOM_HPUS=64", "SPINLOOM_SPIN_US=0",
            "SPINLOOM_START_S=0", "SPINLOOM_END_S=7", "SPINLOOM_HANDLERS=/a::/b", "SPINLOOM_HANDLER_KIND=native",
            "SPINLOOM_UDP_ADDRESS=127.0.0.1", "SPINLOOM_PCAP=out.pcap", "SPINLOOM_TRACE=run"});
  EXPECT_TRUE(settings.warnings.empty()) << settings.warnings.front();
  EXPECT_EQ(settings.copy, live::CopyMode::twice);
  EXPECT_EQ(settings.transport, TransportChoice::udp);
  EXPECT_EQ(settings.hpus, 64u);
  EXPECT_EQ(settings.spin_us, 0u);
  EXPECT_EQ(settings.start_s, 0u);
  EXPECT_EQ(settings.end_s, 7u);
  EXPECT_EQ(settings.handler_folders, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(settings.handlers, HandlerKind::native);
  EXPECT_EQ(settings.udp_address, 0x7f000001u);
  EXPECT_EQ(settings.record, "out.pcap");
  EXPECT_EQ(settings.trace, "run");
  EXPECT_EQ(read({"SPINLOOM_UDP_ADDRESS=127.0.0.0/8,10.9.9.9"}).udp_networks,
            (std::vector<live::UdpNetwork>{{0x7f000001, 8}, {0x0a090909, 0}}));
  EXPECT_EQ(settings.gateway, live::Gateway::no);
  EXPECT_EQ(read({"SPINLOOM_GATEWAY=0"}).gateway, live::Gateway::no);
  EXPECT_EQ(read({"SPINLOOM_GATEWAY=1"}).gateway, live::Gateway::beside);
  EXPECT_FALSE(read({"SPINLOOM_GATEWAY=1"}).gateway_stores);
  EXPECT_EQ(read({"SPINLOOM_GATEWAY=store"}).gateway, live::Gateway::beside);
  EXPECT_TRUE(read({"SPINLOOM_GATEWAY=store"}).gateway_stores);
  EXPECT_EQ(read({"SPINLOOM_COPY=heap"}).copy, live::CopyMode::heap);
}

TEST(Settings, WhatAllRanksMustAgreeOnMakesThemMeetAtTheStart) {
  for (const char* entry : {"SPINLOOM_MEET=contact", "SPINLOOM_COPY=two-copy", "SPINLOOM_TRANSPORT=shm",
                            "SPINLOOM_TRANSPORT=auto", "SPINLOOM_FABRIC=none", "SPINLOOM_TRACE=run"}) {
    EXPECT_TRUE(may_meet_at_contact(read({entry}))) << entry;
  }
  for (const char* entry :
       {"SPINLOOM_MEET=start", "SPINLOOM_TRANSPORT=udp", "SPINLOOM_TRANSPORT=fabric", "SPINLOOM_FABRIC=tcp",
        "SPINLOOM_RAILS=shm,shm", "SPINLOOM_GATEWAY=1", "SPINLOOM_PCAP=out.pcap", "SPINLOOM_UDP_FAULTS=drop=0.1",
        "SPINLOOM_UDP_ADDRESS=127.0.0.1", "SPINLOOM_FABRIC_FAULTS=drop=0.1"}) {
    const Settings settings = read({entry});
    EXPECT_TRUE(settings.warnings.empty()) << entry;
    EXPECT_FALSE(may_meet_at_contact(settings)) << entry;
  }
}

TEST(Settings, AWrongValueIsAWarningWithThoseThereAre) {
  const struct {
    const char* entry;
    const char* says;
  } rows[] = {{"SPINLOOM_COPY=one", "single-copy"},
              {"SPINLOOM_COPY=", "single-copy"},
              {"SPINLOOM_TRANSPORT=tcp", "udp"},
              {"SPINLOOM_HPUS=0", "1 to 64"},
              {"SPINLOOM_HPUS=65", "1 to 64"},
              {"SPINLOOM_HPUS=4x", "1 to 64"},
              {"SPINLOOM_HPUS= 4", "1 to 64"},
              {"SPINLOOM_HPUS=-1", "1 to 64"},
              {"SPINLOOM_SPIN_US=1000001", "1000000"},
              {"SPINLOOM_SPIN_US=99999999999999999999", "1000000"},
              {"SPINLOOM_HANDLER_KIND=elf", "native"},
              {"SPINLOOM_UDP_ADDRESS=localhost", "IPv4"},
              {"SPINLOOM_UDP_FAULTS=lose=1", "drop="},
              {"SPINLOOM_START_S=5s", "1000000"},
              {"SPINLOOM_END_S=-1", "1000000"},
              {"SPINLOOM_GATEWAY=yes", "store"},
              {"SPINLOOM_UDP_ADDRESS=10.1.2.3,", "IPv4"},
              {"SPINLOOM_MEET=late", "contact, start"}};
  for (const auto& row : rows) {
    const Settings settings = read({row.entry});
    ASSERT_EQ(settings.warnings.size(), 1u) << row.entry;
    EXPECT_NE(settings.warnings[0].find(row.says), std::string::npos) << settings.warnings[0];
    EXPECT_NE(settings.warnings[0].find(row.entry), std::string::npos) << settings.warnings[0];
    EXPECT_EQ(settings.copy, live::CopyMode::automatic);
    EXPECT_EQ(settings.hpus, 4u);
    EXPECT_EQ(settings.spin_us, 100u);
  }
}

TEST(Settings, ANameThatNobodyKnowsIsAWarningWithTheNearest) {
  const Settings settings = read({"SPINLOOM_HPU=4", "SPINLOOM_HPUS=8", "SPINLOOM_NOTHING_LIKE_IT=1"});
  ASSERT_EQ(settings.warnings.size(), 2u);
  EXPECT_EQ(settings.warnings[0], "the environment variable SPINLOOM_HPU is not known; the nearest is SPINLOOM_HPUS");
  EXPECT_NE(settings.warnings[1].find("SPINLOOM_NOTHING_LIKE_IT is not known"), std::string::npos);
  EXPECT_EQ(settings.hpus, 8u);
  EXPECT_TRUE(
      read({"SPINLOOM_KERNEL=avx2", "SPINLOOM_TEST_SEED=1", "SPINLOOM_PYTHON_EXECUTABLE=python", "SPINLOOM_NIC=x"})
          .warnings.empty())
      << "those of the rest of Spinloom";
}

}  // namespace
}  // namespace spinloom::process
