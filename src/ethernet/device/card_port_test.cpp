// Capture files through the card: in, what the NIC answers, out; byte by byte.
#include <filesystem>

#include "base/testing/folder.hpp"
#include "base/testing/seeds.hpp"
#include "ethernet/device/testing/card_rig.hpp"
#include "ethernet/port/open.hpp"
#include "ethernet/port/pcap_port.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::ethernet::test {
namespace {

class Captures : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const char* name) const { return folder.of(name); }

  void write(const char* name, const std::vector<FrameBytes>& frames) const {
    const auto port = made(port::open_pcap_port("", path(name)));
    const std::vector<Bytes> all(frames.begin(), frames.end());
    ASSERT_EQ(port->send(all).value(), frames.size());
  }
  [[nodiscard]] std::vector<FrameBytes> read(const char* name) const {
    const auto port = made(port::open_pcap_port(path(name), ""));
    std::vector<FrameBytes> out;
    std::array<Bytes, 16> batch;
    while (const size_t came = port->receive(batch).value()) {
      for (size_t i = 0; i < came; ++i) out.emplace_back(batch[i].begin(), batch[i].end());
    }
    return out;
  }
  TestFolder folder;
};

TEST_F(Captures, AnswersAreThoseOfAHostAndTheRestReachesTheHost) {
  for (const bool native : {true, false}) {
    Random random(native ? 1 : 2);
    std::vector<FrameBytes> asked, answers, rest;
    for (int i = 0; i < 500; ++i) {
      const FrameBytes payload = packet::test::random_bytes(random, random.below(1400));
      const auto number = static_cast<uint16_t>(random.next());
      switch (random.below(4)) {
        case 0: asked.push_back(echo_frame(ends, number, number, payload)); break;
        case 1: asked.push_back(udp_frame(ends, number, 7, payload)); break;
        case 2: asked.push_back(arp_request_frame(ends.source_mac, ends.source, ends.target)); break;
        default:
          rest.push_back(udp_frame(ends, number, 8, payload));
          asked.push_back(rest.back());
          continue;
      }
      answers.push_back(host_answer(asked.back()));
    }
    write("in.pcap", asked);
    {
      auto wire = made(port::open_port("pcap:" + path("in.pcap") + "," + path("out.pcap")));
      const auto card = made(Card::create({}, std::move(wire), made(port::open_port("pcap:," + path("host.pcap")))));
      std::vector<frames::RuleSet> sets;
      uint32_t id = 0;
      for (const auto& [rules, name] : {std::pair{"icmp", "icmp_echo"}, {"udp:7", "udp_echo"}, {"arp", "arp_answer"}}) {
        sets.push_back(rule_set_named(rules).value());
        ContextSetup setup;
        setup.image = image(name, native);
        setup.constants = station();
        ASSERT_TRUE(card->install(ContextId{id}, setup).ok());
        ASSERT_TRUE(card->activate(ContextId{id++}).ok());
      }
      ASSERT_TRUE(card->configure(sets).ok());
      const Status ran = card->run([] { return true; });
      ASSERT_TRUE(ran.ok()) << ran.error().message;
    }
    EXPECT_EQ(read("out.pcap"), answers);
    EXPECT_EQ(read("host.pcap"), rest);
    for (const char* name : {"in.pcap", "out.pcap", "host.pcap"}) std::filesystem::remove(path(name));
  }
}

}  // namespace
}  // namespace spinloom::ethernet::test
