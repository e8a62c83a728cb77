// Messages of a pair over a socket: whole and in order, however their bytes come.
#include "memory/gpu/pair_channel.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace spinloom::gpu {
namespace {

class SocketChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    for (const int end : ends_) channels_.push_back(SocketChannel::make(end).value());
  }
  void TearDown() override {
    for (const int end : ends_) close(end);
  }

  static std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
  // Sends a message by the channel of end 0; returns the bytes that come at end 1.
  std::string sent(const std::string& message) {
    EXPECT_TRUE(channels_[0]->send(bytes_of(message)).ok());
    std::string bytes(1000, '-');
    const ssize_t got = recv(ends_[1], bytes.data(), bytes.size(), MSG_DONTWAIT);
    EXPECT_GT(got, 0);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return bytes;
  }
  void put(const std::string& bytes) {
    ASSERT_EQ(send(ends_[0], bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  // The next message at end 1; "nothing" if there is none, "trouble" for an Error.
  std::string received() {
    const auto message = channels_[1]->receive(0);
    if (!message.ok()) return "trouble";
    if (!*message) return "nothing";
    return {reinterpret_cast<const char*>((*message)->data()), (*message)->size()};
  }

  int ends_[2] = {-1, -1};
  std::vector<std::shared_ptr<PairChannel>> channels_;
};

TEST_F(SocketChannelTest, MessagesComeWholeHoweverTheirBytesCome) {
  for (const char* const message : {"a message", "", "another"}) {
    const std::string bytes = sent(message);
    for (size_t i = 0; i + 1 < bytes.size(); ++i) {
      put(bytes.substr(i, 1));
      ASSERT_EQ(received(), "nothing") << i + 1 << " of " << bytes.size() << " bytes have come";
    }
    put(bytes.substr(bytes.size() - 1));
    EXPECT_EQ(received(), message);
  }
}

TEST_F(SocketChannelTest, MessagesThatComeTogetherAreTakenOneByOne) {
  const std::string both = sent("first") + sent("then");
  put(both);
  EXPECT_EQ(received(), "first");
  EXPECT_EQ(received(), "then");
  EXPECT_EQ(received(), "nothing");
}

TEST_F(SocketChannelTest, WhatComesBehindAMessageIsTheCallers) {
  put(sent("of the pair") + "of the caller");
  EXPECT_EQ(received(), "of the pair");
  std::string bytes(100, '-');
  const ssize_t got = recv(ends_[1], bytes.data(), bytes.size(), MSG_DONTWAIT);
  EXPECT_EQ(bytes.substr(0, static_cast<size_t>(std::max<ssize_t>(got, 0))), "of the caller");
}

TEST_F(SocketChannelTest, BytesOfSomebodyElseAreAnError) {
  put("bytes of somebody else");
  EXPECT_EQ(received(), "trouble");
}

TEST_F(SocketChannelTest, AnEndInAMessageIsAnError) {
  const std::string bytes = sent("a message");
  put(bytes.substr(0, bytes.size() - 1));
  ASSERT_EQ(shutdown(ends_[0], SHUT_WR), 0);
  EXPECT_EQ(received(), "trouble");
}

}  // namespace
}  // namespace spinloom::gpu
