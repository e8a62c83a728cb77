// Datagrams over sockets: in trains, where the kernel takes them, and one by one; disturbed on their way.
#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>

#include "base/testing/folder.hpp"
#include "live/udp/datagram_port.hpp"

namespace spinloom::live {
namespace {

constexpr uint32_t loopback = 0x7f000001;

std::unique_ptr<DatagramPort> port(bool trains) {
  auto made = open_udp(loopback, trains);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

using Bytes = std::vector<uint8_t>;

Bytes content(size_t index, size_t length) {
  Bytes bytes(length);
  std::iota(bytes.begin(), bytes.end(), static_cast<uint8_t>(index));
  return bytes;
}

// Everything that has come; a loopback delivers within the call that sends.
std::vector<Bytes> all_of(DatagramPort& port) {
  std::vector<Bytes> all;
  for (auto taken = port.receive(); !taken.empty(); taken = port.receive()) {
    for (const DatagramIn& one : taken) all.emplace_back(one.bytes.begin(), one.bytes.end());
  }
  return all;
}

// Lengths as they occur: a long message's, short ones, a message after another, one byte, more than fit a call.
std::vector<size_t> lengths() {
  std::vector<size_t> made = {9000, 9000, 9000, 500, 9000,  9000,  40,    40,    40,
                              41,   41,   1,    1,   15360, 15360, 15360, 15360, 15360};
  made.insert(made.end(), 200, 64);
  made.insert(made.end(), {64, 65, 3});
  return made;
}

class Trains : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(Trains, BringWhatWasSent) {
  const auto from = port(GetParam().first);
  const auto to = port(GetParam().second);
  const auto other = port(GetParam().second);
  std::vector<Bytes> wanted;
  for (const size_t length : lengths()) wanted.push_back(content(wanted.size(), length));
  std::vector<DatagramOut> out;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::span<const uint8_t> all(wanted[i]);
    const size_t head = std::min<size_t>(all.size(), i % 50);
    const size_t tail = std::min<size_t>(all.size() - head, 8);
    out.push_back({to->address(), {all.first(head), all.subspan(head, all.size() - head - tail), all.last(tail)}});
    if (i % 20 == 7) out.push_back({other->address(), {wanted[i]}});
  }
  from->send(out);
  EXPECT_TRUE(to->has_datagrams());
  EXPECT_EQ(all_of(*to), wanted) << "each alone, in the order sent";
  EXPECT_FALSE(to->has_datagrams());
  std::vector<Bytes> others;
  for (size_t i = 7; i < wanted.size(); i += 20) others.push_back(wanted[i]);
  EXPECT_EQ(all_of(*other), others);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Trains,
                         testing::Values(std::pair{true, true}, std::pair{true, false}, std::pair{false, true},
                                         std::pair{false, false}),
                         [](const auto& one) {
                           return std::string(one.param.first ? "Train" : "Single") +
                                  (one.param.second ? "Train" : "Single");
                         });

// A kernel refuses a train that its route or device does not carry, with the same error as one to port 0.
TEST(UdpPort, WhatNoTrainCarriesLeavesOneByOne) {
  const auto from = port(true);
  const auto to = port(true);
  const Bytes bytes = content(1, 9000);
  const UdpAddress nowhere{loopback, 0};
  const std::vector<DatagramOut> out = {{to->address(), {bytes}}, {nowhere, {bytes}},       {nowhere, {bytes}},
                                        {nowhere, {bytes}},       {to->address(), {bytes}}, {to->address(), {bytes}}};
  for (int again = 0; again < 2; ++again) {
    from->send(out);
    EXPECT_EQ(all_of(*to), (std::vector<Bytes>{bytes, bytes, bytes}));
  }
}

TEST(UdpPort, ReadersKnowWhetherMoreMayHaveCome) {
  const auto from = port(false);
  const auto to = port(false);
  EXPECT_TRUE(to->receive().empty());
  EXPECT_FALSE(to->was_full());
  const Bytes bytes = content(1, 100);
  from->send(std::vector<DatagramOut>(40, {to->address(), {bytes}}));
  size_t taken = to->receive().size();
  EXPECT_TRUE(to->was_full());
  while (to->was_full()) taken += to->receive().size();
  EXPECT_EQ(taken, 40u);
}

TEST(UdpPort, HoldsAsManyAsItSays) {
  const auto from = port(true);
  const auto to = port(true);
  ASSERT_GT(to->receive_capacity(), 4u);
  const Bytes bytes = content(1, to->datagram_bytes());
  for (size_t i = 0; i < to->receive_capacity(); ++i) {
    const DatagramOut one{to->address(), {bytes}};
    from->send({&one, 1});
  }
  EXPECT_EQ(all_of(*to).size(), to->receive_capacity());
}

TEST(UdpPort, FaultsAreThoseOfTheSeedAndNothingElse) {
  const auto run = [&](const Faults& faults) {
    const auto to = port(true);
    const auto from = disturb(port(true), faults);
    std::vector<Bytes> sent;
    for (size_t i = 0; i < 300; ++i) sent.push_back(content(i, 100));
    for (size_t i = 0; i < sent.size(); i += 30) {
      std::vector<DatagramOut> out;
      for (size_t j = i; j < i + 30; ++j) out.push_back({to->address(), {sent[j]}});
      from->send(out);
    }
    return std::pair{sent, all_of(*to)};
  };
  const auto [sent, clean] = run({});
  EXPECT_EQ(clean, sent);
  EXPECT_LT(run({.drop = 0.2}).second.size(), 280u);
  EXPECT_GT(run({.duplicate = 0.2}).second.size(), 320u);
  EXPECT_EQ(run({.drop = 0.2, .seed = 3}).second, run({.drop = 0.2, .seed = 3}).second);
  EXPECT_NE(run({.drop = 0.2, .seed = 3}).second, run({.drop = 0.2, .seed = 4}).second);
  const auto late = run({.reorder = 0.2}).second;
  EXPECT_NE(late, sent);
  std::map<Bytes, int> often;
  for (const Bytes& one : late) ++often[one];
  EXPECT_GE(late.size(), 299u) << "one may still wait for the next";
  for (const Bytes& one : late) EXPECT_LE(often[one], 2) << "300 contents, of which 256 differ";
  const auto damaged = run({.corrupt = 0.2}).second;
  ASSERT_EQ(damaged.size(), sent.size());
  int changed = 0;
  for (size_t i = 0; i < sent.size(); ++i) changed += damaged[i] != sent[i] ? 1 : 0;
  EXPECT_GT(changed, 20);
  EXPECT_LT(changed, 120);
}

// An entry of a recording: one raw IPv4 packet for each datagram.
struct Recorded {
  UdpAddress from;
  UdpAddress to;
  Bytes bytes;
  bool operator==(const Recorded&) const = default;
};

std::vector<Recorded> packets_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const Bytes all{std::istreambuf_iterator<char>(file), {}};
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, &all.at(at), sizeof value);
    return value;
  };
  const auto big = [&](size_t at) { return static_cast<uint32_t>(all.at(at) << 8 | all.at(at + 1)); };
  const auto address = [&](size_t at, size_t port) {
    return UdpAddress{big(at) << 16 | big(at + 2), static_cast<uint16_t>(big(port))};
  };
  EXPECT_EQ(word(0), 0xa1b23c4du) << "pcap with nanoseconds";
  EXPECT_EQ(word(20), 101u) << "raw IP";
  std::vector<Recorded> found;
  for (size_t at = 24; at < all.size();) {
    const size_t length = word(at + 8);
    EXPECT_EQ(word(at + 12), length);
    const size_t ip = at + 16;
    const size_t udp = ip + 20;
    EXPECT_EQ(all.at(ip), 0x45);
    EXPECT_EQ(all.at(ip + 9), 17) << "UDP";
    EXPECT_EQ(big(ip + 2), length) << "the packet's length";
    EXPECT_EQ(big(udp + 4), length - 20) << "the datagram's length with its header";
    uint32_t sum = 0;
    for (size_t i = ip; i < udp; i += 2) sum += big(i);
    EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu) << "the header's checksum";
    const auto end = all.begin() + static_cast<ptrdiff_t>(ip + length);
    found.push_back(
        {address(ip + 12, udp), address(ip + 16, udp + 2), {all.begin() + static_cast<ptrdiff_t>(udp + 8), end}});
    at = ip + length;
  }
  return found;
}

TEST(UdpPort, ARecordingHasEachDatagramWithItsHeaders) {
  const TestFolder folder;
  const std::string path = folder.of("recorded.pcap");
  const auto other = port(true);
  auto recorded = std::move(*record(port(true), path));
  std::vector<Recorded> wanted;
  for (const size_t length : {0u, 1u, 8u, 300u, 9000u}) {
    const Bytes bytes = content(length, length);
    const DatagramOut there{other->address(), {bytes}};
    const DatagramOut back{recorded->address(), {bytes}};
    recorded->send({&there, 1});
    other->send({&back, 1});
    EXPECT_EQ(all_of(*recorded), std::vector<Bytes>{bytes});
    wanted.push_back({recorded->address(), other->address(), bytes});
    wanted.push_back({other->address(), recorded->address(), bytes});
  }
  recorded.reset();
  EXPECT_EQ(packets_of(path), wanted);
}

}  // namespace
}  // namespace spinloom::live
