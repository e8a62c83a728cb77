// Capture files: what is written is read again, what is no such file is refused with what to do, nothing is written
// over.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/testing/seeds.hpp"
#include "ethernet/port/open.hpp"
#include "ethernet/port/pcap_file.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::port {
namespace {

using packet::FrameBytes;

class Pcap : public ::testing::Test {
 protected:
  Pcap() {
    std::string folder = (std::filesystem::temp_directory_path() / "spinloom-pcap-XXXXXX").string();
    folder_ = mkdtemp(folder.data());
  }
  ~Pcap() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string bytes_of(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
};

std::vector<FrameBytes> all_of(FramePort& port, size_t at_once = 7) {
  std::vector<FrameBytes> out;
  std::vector<Bytes> batch(at_once);
  while (!port.ended()) {
    const auto count = port.receive(batch);
    EXPECT_TRUE(count.ok()) << count.error().message;
    if (!count) break;
    for (size_t i = 0; i < *count; ++i) out.emplace_back(batch[i].begin(), batch[i].end());
  }
  return out;
}

std::vector<FrameBytes> random_frames(Random& random, size_t count) {
  std::vector<FrameBytes> out;
  for (size_t i = 0; i < count; ++i) out.push_back(packet::test::random_frame(random));
  return out;
}

void write(const std::string& path, const PcapFormat& format, const std::vector<FrameBytes>& frames) {
  auto writer = PcapWriter::create(path, format);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  int64_t time_ns = 1'700'000'000'123'456'000;
  for (const FrameBytes& frame : frames) ASSERT_TRUE(writer->append(frame, time_ns += 1000).ok());
  ASSERT_TRUE(writer->flush().ok());
}

TEST_F(Pcap, EachOrderAndResolutionIsReadAgain) {
  for_seeds(5, [this](Random& random) {
    for (const bool big_endian : {false, true}) {
      for (const bool nanoseconds : {false, true}) {
        const auto frames = random_frames(random, 40);
        const std::string name = text("in", random.next(), ".pcap");
        write(path(name), {big_endian, nanoseconds, 0}, frames);
        auto port = open_port("pcap:" + path(name));
        ASSERT_TRUE(port.ok()) << port.error().message;
        EXPECT_EQ(all_of(**port), frames);
        EXPECT_EQ((*port)->counters().received, frames.size());
      }
    }
  });
}

TEST_F(Pcap, TheFirstBytesAreThoseOfTheFormat) {
  // Microseconds, big-endian: magic, version 2.4, two zeros, 262144, Ethernet.
  write(path("a.pcap"), {true, false, 0}, {});
  EXPECT_EQ(bytes_of("a.pcap"), std::string("\xa1\xb2\xc3\xd4\0\2\0\4\0\0\0\0\0\0\0\0\0\4\0\0\0\0\0\1", 24));
  write(path("b.pcap"), {}, {});
  EXPECT_EQ(bytes_of("b.pcap"), std::string("\x4d\x3c\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0", 24));
}

TEST_F(Pcap, WhatIsSentIsTheNextPortsInput) {
  for_seeds(3, [this](Random& random) {
    const auto frames = random_frames(random, 100);
    write(path("in.pcap"), {}, frames);
    {
      auto port = open_port("pcap:" + path("in.pcap") + "," + path("out.pcap"));
      ASSERT_TRUE(port.ok()) << port.error().message;
      std::vector<Bytes> batch(64);
      while (!(*port)->ended()) {
        const auto count = (*port)->receive(batch);
        ASSERT_TRUE(count.ok());
        const auto sent = (*port)->send(std::span(batch).first(*count));
        ASSERT_TRUE(sent.ok()) << sent.error().message;
        EXPECT_EQ(*sent, *count);
      }
    }
    EXPECT_EQ(bytes_of("out.pcap"), bytes_of("in.pcap"));
    std::filesystem::remove(path("in.pcap"));
    std::filesystem::remove(path("out.pcap"));
  });
}

// Frames of one time come together; between those of another there is time to answer.
TEST_F(Pcap, AnswersHaveTheTimesOfTheirRequests) {
  for_seeds(5, [this](Random& random) {
    const auto frames = random_frames(random, 60);
    const std::string in = path("in.pcap"), out = path("out.pcap");
    std::vector<int64_t> times_ns;
    {
      auto writer = PcapWriter::create(in);
      ASSERT_TRUE(writer.ok());
      for (const FrameBytes& frame : frames) {
        const int64_t before_ns = times_ns.empty() ? 0 : times_ns.back();
        times_ns.push_back(before_ns + (random.chance(1, 3) ? 1'000'000'001 : 0));
        ASSERT_TRUE(writer->append(frame, times_ns.back()).ok());
      }
      ASSERT_TRUE(writer->flush().ok());
    }
    const uint64_t rounds = 1 + random.below(3);
    for (const std::string& name : {"pcap:" + in + "," + out, text("replay:", in, ",", rounds, ",", out)}) {
      size_t calls = 0;
      {
        auto port = open_port(name);
        ASSERT_TRUE(port.ok()) << port.error().message;
        std::vector<Bytes> batch(64);
        for (; !(*port)->ended(); ++calls) {
          const auto count = (*port)->receive(batch);
          ASSERT_TRUE(count.ok() && (*port)->send(std::span(batch).first(*count)).ok());
        }
      }
      auto again = PcapReader::open(out);
      ASSERT_TRUE(again.ok());
      std::array<Bytes, 1> one;
      size_t seen = 0;
      for (; !again->ended(); ++seen) {
        ASSERT_TRUE(again->read(one).ok());
        EXPECT_EQ(again->time_ns(), times_ns[seen % times_ns.size()]) << name << " " << seen;
      }
      EXPECT_EQ(seen, frames.size() * (name.starts_with("pcap") ? 1 : rounds));
      EXPECT_LT(calls, seen);  // frames of one time are a batch
      std::filesystem::remove(out);
    }
    std::filesystem::remove(in);
  });
}

// A capture on the sender's own machine shows frames before the hardware has filled in their checksums.
TEST_F(Pcap, ChecksumsThatWereLeftToHardwareAreFilledIn) {
  const packet::Endpoints ends{{{2, 0, 0, 0, 0, 9}}, {{2, 0, 0, 0, 0, 1}}, {0x0a000001}, {0x0a000002}};
  const FrameBytes right = packet::udp_frame(ends, 1, 9330, FrameBytes(101, 7));
  FrameBytes left = right, damaged = right;
  const auto ipv4 = packet::read_ipv4(Bytes(left).subspan(14));
  const auto length = static_cast<uint16_t>(ipv4->payload.size());
  const auto sum = static_cast<uint16_t>(~packet::pseudo_header(*ipv4, packet::ip_protocol::udp, length).finish());
  constexpr size_t field = 14 + 20 + 6;
  left[field] = static_cast<uint8_t>(sum >> 8);
  left[field + 1] = static_cast<uint8_t>(sum);
  damaged[field + 1] ^= 1;
  ASSERT_NE(left, right);
  write(path("in.pcap"), {}, {left, right, damaged});
  for (const std::string& name : {"pcap:" + path("in.pcap"), "replay:" + path("in.pcap") + ",1"}) {
    auto port = open_port(name);
    ASSERT_TRUE(port.ok()) << port.error().message;
    EXPECT_EQ(all_of(**port), (std::vector<FrameBytes>{right, right, damaged})) << name;
  }
}

TEST_F(Pcap, AnExistingFileIsNotWrittenOver) {
  file("out.pcap", "dear to me");
  const auto port = open_port("pcap:," + path("out.pcap"));
  ASSERT_FALSE(port.ok());
  EXPECT_NE(port.error().message.find("exists and is not written over"), std::string::npos) << port.error().message;
  EXPECT_EQ(bytes_of("out.pcap"), "dear to me");
}

// A NIC whose start fails opens its ports and does nothing with them.
TEST_F(Pcap, APortThatWasNeverUsedLeavesNoFile) {
  write(path("in.pcap"), {}, {FrameBytes(60)});
  const std::string in = path("in.pcap"), out = path("out.pcap");
  for (const std::string& port :
       {"pcap:" + in + "," + out, "replay:" + in + ",2," + out, "record:" + out + ",pcap:" + in}) {
    {
      auto unused = open_port(port);
      ASSERT_TRUE(unused.ok()) << unused.error().message;
      EXPECT_TRUE(std::filesystem::exists(out)) << port;
    }
    EXPECT_FALSE(std::filesystem::exists(out)) << port;
    {
      auto used = open_port(port);
      ASSERT_TRUE(used.ok() && (*used)->receive({}).ok());
    }
    EXPECT_EQ(bytes_of("out.pcap").size(), pcap_header_bytes) << port;
    std::filesystem::remove(out);
  }
}

TEST_F(Pcap, OtherFilesAreRefusedWithWhatToDo) {
  const auto message = [](const std::string& path) {
    const auto port = open_port("pcap:" + path);
    return port ? "opened" : port.error().message;
  };
  EXPECT_NE(message(path("none.pcap")).find("No such file"), std::string::npos);
  EXPECT_NE(message(file("short", "\xd4\xc3")).find("fewer than the 24 bytes"), std::string::npos);
  EXPECT_NE(message(file("text", std::string(100, 'a'))).find("no pcap file"), std::string::npos);
  EXPECT_NE(message(file("ng", std::string("\x0a\x0d\x0d\x0a", 4) + std::string(60, 0))).find("editcap -F pcap"),
            std::string::npos);
  auto cooked = std::string("\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\x71\0\0\0", 24);
  EXPECT_NE(message(file("cooked", cooked)).find("link type 113"), std::string::npos);
  cooked[20] = 1;
  EXPECT_EQ(message(file("empty", cooked)), "opened");
  EXPECT_NE(message(file("long", cooked + std::string(8, 0) + std::string(8, '\x7f'))).find("is damaged"),
            std::string::npos);
}

TEST_F(Pcap, AFileThatWasCutOffGivesItsGoodRecordsAndThenAnError) {
  Random random(1);
  const auto frames = random_frames(random, 3);
  write(path("in.pcap"), {}, frames);
  const std::string whole = bytes_of("in.pcap");
  const size_t last = frames.back().size() + pcap_record_header_bytes;
  for (const size_t missing : {size_t{1}, frames.back().size(), frames.back().size() + 1, last - 1}) {
    auto port = open_port("pcap:" + file(text("cut", missing), whole.substr(0, whole.size() - missing)));
    ASSERT_TRUE(port.ok());
    std::vector<Bytes> batch(1);
    size_t good = 0;
    auto count = (*port)->receive(batch);
    for (; count.ok() && *count == 1; count = (*port)->receive(batch)) ++good;
    ASSERT_FALSE(count.ok());
    EXPECT_NE(count.error().message.find("record 3"), std::string::npos) << count.error().message;
    EXPECT_FALSE((*port)->receive(batch).ok());
    EXPECT_LE(good, 2U);
  }
}

TEST_F(Pcap, FramesThatAreNotWholeAreCounted) {
  const FrameBytes frame(100, 1);
  auto writer = PcapWriter::create(path("in.pcap"));
  ASSERT_TRUE(writer.ok() && writer->append(frame, 0).ok() && writer->append(FrameBytes(9100, 1), 0).ok() &&
              writer->append(FrameBytes(13, 1), 0).ok() && writer->append(frame, 0).ok() && writer->flush().ok());
  std::string bytes = bytes_of("in.pcap");
  bytes[pcap_header_bytes + 12] = 101;  // the file has 100 bytes of the first frame's 101
  auto port = open_port("pcap:" + file("cut.pcap", bytes));
  ASSERT_TRUE(port.ok());
  EXPECT_EQ(all_of(**port), std::vector<FrameBytes>{frame});
  EXPECT_EQ((*port)->counters().truncated, 3U);
  EXPECT_EQ((*port)->counters().received, 1U);
}

TEST_F(Pcap, CheckSequencesAreTakenOff) {
  write(path("in.pcap"), {false, true, 4}, {FrameBytes(64, 1)});
  auto port = open_port("pcap:" + path("in.pcap"));
  ASSERT_TRUE(port.ok());
  EXPECT_EQ(all_of(**port), std::vector<FrameBytes>{FrameBytes(60, 1)});
}

TEST_F(Pcap, AReplayGivesAllFramesAsOftenAsAsked) {
  for_seeds(10, [this](Random& random) {
    const auto frames = random_frames(random, 1 + random.below(20));
    const uint64_t times = 1 + random.below(5);
    const std::string name = path(text(random.next(), ".pcap"));
    write(name, {}, frames);
    auto port = open_port(text("replay:", name, ",", times));
    ASSERT_TRUE(port.ok()) << port.error().message;
    const auto seen = all_of(**port, 1 + random.below(9));
    ASSERT_EQ(seen.size(), frames.size() * times);
    for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], frames[i % frames.size()]);
    EXPECT_EQ((*port)->counters().received, seen.size());
  });
  write(path("none.pcap"), {}, {});
  auto port = open_port("replay:" + path("none.pcap") + ",1000000000000");
  ASSERT_TRUE(port.ok());
  EXPECT_TRUE((*port)->ended());
}

TEST_F(Pcap, ARecordHasAllThatPassesInItsOrder) {
  Random random(1);
  const auto frames = random_frames(random, 12);
  write(path("in.pcap"), {}, frames);
  {
    auto port = open_port("record:" + path("seen.pcap") + ",pcap:" + path("in.pcap") + "," + path("out.pcap"));
    ASSERT_TRUE(port.ok()) << port.error().message;
    std::vector<Bytes> batch(4);
    while (!(*port)->ended()) {
      const auto count = (*port)->receive(batch);
      ASSERT_TRUE(count.ok());
      ASSERT_TRUE((*port)->send(std::span(batch).first(*count)).ok());
    }
    EXPECT_EQ((*port)->counters().sent, frames.size());
    EXPECT_FALSE(open_port("record:" + path("seen.pcap") + ",pcap:").ok());
  }
  auto seen = open_port("pcap:" + path("seen.pcap"));
  ASSERT_TRUE(seen.ok());
  const auto all = all_of(**seen);
  ASSERT_EQ(all.size(), 2 * frames.size());  // one that came, the same one that went, and so on: each has its own time
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], frames[i / 2]) << i;
}

TEST_F(Pcap, ARecordThatFindsNoRoomEndsAndThePortGoesOn) {
  const FrameBytes frame(1000, 3);
  const std::vector<Bytes> frames(10, frame);
  auto port = open_port("record:" + path("seen.pcap") + ",pcap:");
  ASSERT_TRUE(port.ok()) << port.error().message;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit few{4096, before.rlim_max};
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &few);
  const auto first = (*port)->send(frames);
  const auto second = (*port)->send(frames);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first + *second, 20u);
  EXPECT_EQ(bytes_of("seen.pcap").size(), 4096u);
}

TEST_F(Pcap, AFrameOfAWrongLengthIsNotSent) {
  auto port = open_port("pcap:," + path("out.pcap"));
  ASSERT_TRUE(port.ok());
  const FrameBytes good(60);
  for (const size_t length : {size_t{0}, size_t{13}, (*port)->frame_bytes_max() + 1}) {
    const FrameBytes wrong(length);
    const std::array<Bytes, 2> both{good, wrong};
    const auto sent = (*port)->send(both);
    ASSERT_FALSE(sent.ok());
    EXPECT_NE(sent.error().message.find("14 to 9014 bytes"), std::string::npos) << sent.error().message;
  }
  EXPECT_EQ((*port)->counters().sent, 0U);
  EXPECT_EQ(bytes_of("out.pcap").size(), pcap_header_bytes);
}

}  // namespace
}  // namespace spinloom::port
