// Two processes of one device, or of the driver of tests/gpu/driver: each way of a pair moves layouts to layouts; what
// goes wrong at one is an Error at both; a process that ends is told at once. The second process is this program again,
// because a process that forks keeps no driver.
#include "memory/gpu/pair.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/gpu/plan.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::gpu {
namespace {

using layout::test::must_parse;

struct PairCase {
  const char* from;
  const char* to;
  int64_t count = 1;
};

// Short, of one piece and of many; structs, lists, negative strides, extents that overlap, no bytes at all.
constexpr PairCase pair_cases[] = {
    {"hvector(1000, 8, 24B, byte)", "hvector(500, 16, 40B, byte)"},
    {"contig(3, int)", "hvector(3, 4, -8B, byte)"},
    {"vector(500, 3, 7, double)", "contig(1500, double)", 7},
    {"idxblock(1, rand(5, 30000, 10000), double)", "hvector(10000, 8, 16B, byte)"},
    {"struct([(0B, int), (8B, 2, double), (40B, char)])", "contig(21, byte)", 3000},
    {"resized(0B, 8B, vector(100, 1, 110, double))", "contig(100, double)", 90},
    {"contig(0, int)", "contig(0, double)"},
    {"hvector(40000, 100, 128B, byte)", "hvector(100000, 40, 64B, byte)"},
};

// Memory of a message with bytes around it. An address and an offset name the place together.
struct PairMemory {
  static constexpr int64_t guard = 256;
  static constexpr int64_t offset = 48;

  PairMemory(const Device& on, const char* text, int64_t elements)
      : device(on), type(must_parse(text)), count(elements), blob(*layout::Blob::build(type)) {
    const layout::oracle::Reach reach = layout::oracle::reach(type, count);
    place = guard - reach.first;
    bytes = static_cast<size_t>(reach.last - reach.first + 2 * guard);
    memory = std::move(Memory::device(device, bytes).value());
  }
  [[nodiscard]] std::byte* base() const { return memory.data() + (place - offset); }
  [[nodiscard]] Side side() const { return Side::of(blob, count, offset); }
  [[nodiscard]] std::vector<std::byte> random(uint64_t seed) const {
    std::vector<std::byte> data(bytes);
    Random random(seed, "gpu.pair");
    for (std::byte& byte : data) byte = static_cast<std::byte>(random.next());
    return data;
  }
  [[nodiscard]] std::vector<std::byte> packed(const std::vector<std::byte>& data) const {
    std::vector<std::byte> out(static_cast<size_t>(type.size() * count));
    EXPECT_TRUE(layout::oracle::pack(type, count, data.data() + place, out).ok());
    return out;
  }
  void put(const std::vector<std::byte>& data) const {
    ASSERT_TRUE(copy_bytes(device, memory.data(), data.data(), bytes, nullptr).ok());
    ASSERT_TRUE(device.synchronise().ok());
  }
  void expect(const std::vector<std::byte>& message, const std::vector<std::byte>& before) const {
    std::vector<std::byte> data(bytes);
    ASSERT_TRUE(copy_bytes(device, data.data(), memory.data(), bytes, nullptr).ok());
    ASSERT_TRUE(device.synchronise().ok());
    const Status same = layout::oracle::compare(type, count, message, data, place, before);
    EXPECT_TRUE(same.ok()) << same.error().message;
  }

  Device device;
  layout::Type type;
  int64_t count;
  layout::Blob blob;
  int64_t place = 0;
  size_t bytes = 0;
  Memory memory;
};

// The seed names the message, so that the other process knows it, too.
struct PairMessages {
  explicit PairMessages(Pair& over) : pair(over) {}

  void send(const PairCase& made, uint64_t seed) {
    const PairMemory source(pair.device(), made.from, made.count);
    const std::vector<std::byte> data = source.random(seed);
    // No call waits for this copy before the send.
    Memory pinned = std::move(Memory::pinned(pair.device(), source.bytes).value());
    std::memcpy(pinned.data(), data.data(), source.bytes);
    ASSERT_TRUE(copy_bytes(pair.device(), source.memory.data(), pinned.data(), source.bytes, nullptr).ok());
    const Status sent = pair.send(source.side(), source.base());
    ASSERT_TRUE(sent.ok()) << sent.error().message;
  }
  void receive(const PairCase& made, uint64_t seed) {
    const PairMemory source(pair.device(), made.from, made.count);
    const PairMemory target(pair.device(), made.to, made.count);
    const std::vector<std::byte> before = target.random(seed + 1000);
    target.put(before);
    const Status received = pair.receive(target.side(), target.base());
    ASSERT_TRUE(received.ok()) << received.error().message;
    target.expect(source.packed(source.random(seed)), before);
  }
  void exchange(const PairCase& made, uint64_t sent_seed, uint64_t received_seed) {
    const PairMemory source(pair.device(), made.from, made.count);
    const PairMemory target(pair.device(), made.to, made.count);
    const std::vector<std::byte> before = target.random(7);
    target.put(before);
    source.put(source.random(sent_seed));
    auto out = pair.begin_send(source.side(), source.base());
    auto in = pair.begin_receive(target.side(), target.base());
    ASSERT_TRUE(out.ok()) << out.error().message;
    ASSERT_TRUE(in.ok()) << in.error().message;
    EXPECT_NE(pair.begin_send(source.side(), source.base()).error().message.find("one move in each direction"),
              std::string::npos);
    bool out_over = false;
    bool in_over = false;
    while (!out_over || !in_over) {
      const auto out_now = out->test();
      const auto in_now = in->test();
      ASSERT_TRUE(out_now.ok()) << out_now.error().message;
      ASSERT_TRUE(in_now.ok()) << in_now.error().message;
      out_over = *out_now;
      in_over = *in_now;
    }
    target.expect(source.packed(source.random(received_seed)), before);
  }

  Pair& pair;
};

// A second process; `role` is the name of its test, `way` the forced way.
class PairPeer {
 public:
  PairPeer(std::string_view role, std::string_view way, bool keeps_its_end = false) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    socket = ends[0];
    other_ = ends[1];
    const std::string end = std::to_string(other_);
    const std::string filter = "--gtest_filter=DevicePairs." + std::string(role);
    const std::string forced(way);
    child_ = fork();
    EXPECT_GE(child_, 0);
    if (child_ == 0) {
      close(socket);
      setenv("SPINLOOM_TEST_PAIR", end.c_str(), 1);
      setenv("SPINLOOM_GPU_PEER", forced.c_str(), 1);
      execl("/proc/self/exe", "spinloom_gpu_test", filter.c_str(), "--gtest_brief=1", nullptr);
      _exit(127);
    }
    if (!keeps_its_end) {
      close(other_);
      other_ = -1;
    }
  }
  PairPeer(const PairPeer&) = delete;
  PairPeer& operator=(const PairPeer&) = delete;
  ~PairPeer() {
    if (child_ > 0) expect_exit();
    close(socket);
    if (other_ >= 0) close(other_);
  }
  void hang_up() const { (void)shutdown(socket, SHUT_RDWR); }
  void expect_exit() {
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the second process failed";
    child_ = 0;
  }
  void expect_killed() {
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_TRUE(WIFSIGNALED(status));
    child_ = 0;
  }
  [[nodiscard]] Result<Pair> connect(std::string_view way = "") const { return connect_over(socket, way); }

  static Result<Pair> connect_over(int socket, std::string_view way = "") {
    SPL_ASSIGN(const Device device, Device::at(0));
    SPL_ASSIGN(std::shared_ptr<PairChannel> channel, SocketChannel::make(socket));
    PairOptions options;
    options.way = way;
    options.piece_bytes = size_t{256} << 10;
    options.pieces = 3;
    return Pair::connect(device, std::move(channel), options);
  }

  int socket = -1;

 private:
  int other_ = -1;
  pid_t child_ = 0;
};

class OnDevicePair : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << unavailable_reason();
  }
};

// The parts of the second process.
class DevicePairs : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const given = std::getenv("SPINLOOM_TEST_PAIR");
    if (given == nullptr) GTEST_SKIP() << "a part of a test of OnDevicePair";
    socket_ = static_cast<int>(std::strtol(given, nullptr, 10));
  }
  [[nodiscard]] Pair connected() const {
    auto pair = PairPeer::connect_over(socket_);
    EXPECT_TRUE(pair.ok()) << pair.error().message;
    return std::move(pair.value());
  }
  int socket_ = -1;
};

constexpr const char* every_way[] = {"ipc", "staged", "packed"};

TEST_F(DevicePairs, ReceivesAndSendsBack) {
  Pair pair = connected();
  PairMessages messages(pair);
  uint64_t seed = 1;
  for (int round = 0; round < 2; ++round) {
    for (const PairCase& made : pair_cases) messages.receive(made, seed++);
    for (const PairCase& made : pair_cases) messages.send(made, seed++);
  }
  for (const PairCase& made : pair_cases) {
    messages.exchange(made, seed + 1, seed);
    seed += 2;
  }
}

TEST_F(OnDevicePair, EveryWayMovesLayoutsToLayouts) {
  for (const char* const way : every_way) {
    SCOPED_TRACE(way);
    const PairPeer peer("ReceivesAndSendsBack", way);
    auto pair = peer.connect();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    EXPECT_STREQ(name_of(pair->way()), way);
    PairMessages messages(*pair);
    uint64_t seed = 1;
    for (int round = 0; round < 2; ++round) {
      for (const PairCase& made : pair_cases) messages.send(made, seed++);
      for (const PairCase& made : pair_cases) messages.receive(made, seed++);
    }
    for (const PairCase& made : pair_cases) {
      messages.exchange(made, seed, seed + 1);
      seed += 2;
    }
  }
}

// A message by CUDA IPC is one kernel, at the receiver.
TEST_F(DevicePairs, CountsItsLaunches) {
  Pair pair = connected();
  PairMessages messages(pair);
  const int64_t before = launch_count();
  messages.receive(pair_cases[0], 1);
  EXPECT_EQ(launch_count() - before, 1);
}

TEST_F(OnDevicePair, OneKernelAMessageByIpc) {
  const PairPeer peer("CountsItsLaunches", "ipc");
  auto pair = peer.connect();
  ASSERT_TRUE(pair.ok()) << pair.error().message;
  EXPECT_NE(pair->reason().find("each process has read the other's memory by CUDA IPC; both use one device"),
            std::string::npos)
      << pair->reason();
  PairMessages messages(*pair);
  const int64_t before = launch_count();
  messages.send(pair_cases[0], 1);
  EXPECT_EQ(launch_count() - before, 0);
}

constexpr PairCase good = {"vector(500, 1, 2, int)", "contig(500, int)"};
constexpr PairCase longer = {"vector(500, 1, 2, int)", "contig(501, int)"};

TEST_F(DevicePairs, GoesOnAfterErrors) {
  Pair pair = connected();
  PairMessages messages(pair);
  const PairMemory target(pair.device(), longer.to, 1);
  const auto expect_error = [&](const Side& side, void* base, const char* sentence) {
    const Status received = pair.receive(side, base);
    ASSERT_FALSE(received.ok());
    EXPECT_NE(received.error().message.find(sentence), std::string::npos) << received.error().message;
  };
  expect_error(target.side(), target.base(), "has 2000 packed bytes, the receiver's layout holds 2004");
  messages.receive(good, 1);
  expect_error(target.side(), target.base(), "withdrawn the message: the source lies at");
  expect_error(target.side(), target.base(), "withdrawn the message: the source ends behind the memory");
  messages.receive(good, 2);
  std::vector<std::byte> host(4096);
  expect_error(target.side(), host.data(), "the destination lies at");
  messages.receive(good, 3);
}

TEST_F(OnDevicePair, WrongMessagesAreErrorsAtBoth) {
  for (const char* const way : every_way) {
    SCOPED_TRACE(way);
    const PairPeer peer("GoesOnAfterErrors", way);
    auto pair = peer.connect();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    PairMessages messages(*pair);
    const PairMemory source(pair->device(), good.from, 1);
    const auto expect_error = [&](const Side& side, const void* base, const char* sentence) {
      const Status sent = pair->send(side, base);
      ASSERT_FALSE(sent.ok());
      EXPECT_NE(sent.error().message.find(sentence), std::string::npos) << sent.error().message;
    };
    expect_error(source.side(), source.base(), "refused the message: the sender's message has 2000 packed bytes");
    messages.send(good, 1);
    const std::vector<std::byte> host(4096);
    expect_error(source.side(), host.data(), "which is memory of the host, or memory of a GPU that was freed");
    const Memory small = std::move(Memory::device(pair->device(), 300).value());
    expect_error(source.side(), small.data(), "3996 bytes are needed");
    messages.send(good, 2);
    expect_error(source.side(), source.base(), "refused the message: the destination lies at");
    messages.send(good, 3);
  }
}

// A full device is full for a while, a lost one is lost.
TEST_F(DevicePairs, HasNoMemoryThenNoDevice) {
  Pair pair = connected();
  PairMessages messages(pair);
  {
    const PairMemory target(pair.device(), pair_cases[7].to, 1);
    setenv("FAKE_GPU_BYTES", "1", 1);
    const Status received = pair.receive(target.side(), target.base());
    ASSERT_FALSE(received.ok());
    EXPECT_EQ(received.error().code, Code::exhausted) << received.error().message;
    unsetenv("FAKE_GPU_BYTES");
  }
  messages.receive(pair_cases[7], 4);
  const PairMemory target(pair.device(), pair_cases[7].to, 1);
  setenv("FAKE_GPU_LOST_AFTER", "0", 1);
  const Status received = pair.receive(target.side(), target.base());
  ASSERT_FALSE(received.ok());
  EXPECT_NE(received.error().message.find("a kernel failed"), std::string::npos) << received.error().message;
}

TEST_F(OnDevicePair, TroubleOfOneDeviceIsToldToTheOther) {
  if (Device::at(0)->name() != "a GPU of the tests") GTEST_SKIP() << "a GPU does not fail when it is told to";
  for (const char* const way : every_way) {
    SCOPED_TRACE(way);
    const PairPeer peer("HasNoMemoryThenNoDevice", way);
    auto pair = peer.connect();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    PairMessages messages(*pair);
    const PairMemory source(pair->device(), pair_cases[7].from, 1);
    const Status full = pair->send(source.side(), source.base());
    ASSERT_FALSE(full.ok());
    EXPECT_NE(full.error().message.find("free memory of the device"), std::string::npos) << full.error().message;
    messages.send(pair_cases[7], 4);
    const Status lost = pair->send(source.side(), source.base());
    ASSERT_FALSE(lost.ok());
    EXPECT_NE(lost.error().message.find("a kernel failed"), std::string::npos) << lost.error().message;
  }
}

TEST_F(DevicePairs, DropsAMove) {
  Pair pair = connected();
  const PairMemory target(pair.device(), good.to, 1);
  {
    const auto dropped = pair.begin_receive(target.side(), target.base());
    ASSERT_TRUE(dropped.ok());
  }
  const Status received = pair.receive(target.side(), target.base());
  ASSERT_FALSE(received.ok());
  EXPECT_NE(received.error().message.find("dropped before it was over"), std::string::npos);
  char byte = 0;
  while (read(socket_, &byte, 1) > 0) continue;  // alive until the other one has been told
}

TEST_F(OnDevicePair, AMoveThatIsDroppedEndsThePairAtBoth) {
  for (const char* const way : every_way) {
    SCOPED_TRACE(way);
    const PairPeer peer("DropsAMove", way);
    auto pair = peer.connect();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    const PairMemory source(pair->device(), good.from, 1);
    for (int times = 0; times < 2; ++times) {
      const Status sent = pair->send(source.side(), source.base());
      ASSERT_FALSE(sent.ok());
      EXPECT_NE(sent.error().message.find("the other process of the pair has dropped a move"), std::string::npos)
          << sent.error().message;
    }
    peer.hang_up();
  }
}

TEST_F(DevicePairs, EndsWhenTheOfferComes) {
  Pair pair = connected();
  pollfd asked{socket_, POLLIN, 0};
  (void)poll(&asked, 1, 60'000);
  (void)raise(SIGKILL);
}

// Whoever forks often keeps the other's end of the socket, so that the socket says nothing.
TEST_F(OnDevicePair, AProcessThatEndsIsTold) {
  for (const char* const way : every_way) {
    for (const bool keeps : {false, true}) {
      SCOPED_TRACE(way);
      PairPeer peer("EndsWhenTheOfferComes", way, keeps);
      auto pair = peer.connect();
      ASSERT_TRUE(pair.ok()) << pair.error().message;
      const PairMemory source(pair->device(), pair_cases[7].from, 1);
      const Status sent = pair->send(source.side(), source.base());
      ASSERT_FALSE(sent.ok());
      EXPECT_NE(sent.error().message.find("the other process of the pair has"), std::string::npos)
          << sent.error().message;
      EXPECT_FALSE(pair->receive(source.side(), source.base()).ok());
      peer.expect_killed();
    }
  }
}

TEST_F(DevicePairs, FindsAWay) {
  const auto pair = PairPeer::connect_over(socket_);
  if (!pair) return;
  Pair found = *pair;
  PairMessages messages(found);
  messages.receive(pair_cases[2], 5);
}

TEST_F(OnDevicePair, FallsBackWhereIpcDoesNotWork) {
  if (Device::at(0)->name() != "a GPU of the tests") GTEST_SKIP() << "only the driver of the tests can refuse IPC";
  struct Unset {
    const char* name;
    ~Unset() { unsetenv(name); }
  };
  const Unset ipc{"FAKE_GPU_NO_IPC"};
  const Unset pinning{"FAKE_GPU_NO_PINNING"};
  setenv(ipc.name, "1", 1);
  for (const char* const expected : {"staged", "packed"}) {
    if (std::string_view(expected) == "packed") setenv(pinning.name, "1", 1);
    const PairPeer peer("FindsAWay", "auto");
    auto pair = peer.connect();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    EXPECT_STREQ(name_of(pair->way()), expected);
    EXPECT_NE(pair->reason().find("CUDA IPC does not work between them ("), std::string::npos) << pair->reason();
    PairMessages messages(*pair);
    messages.send(pair_cases[2], 5);
  }
  for (const char* const forced : {"ipc", "staged"}) {
    const PairPeer peer("FindsAWay", "auto");
    const auto pair = peer.connect(forced);
    ASSERT_FALSE(pair.ok());
    EXPECT_NE(pair.error().message.find(std::string(forced) + ", but this pair cannot: "), std::string::npos)
        << pair.error().message;
  }
}

TEST_F(OnDevicePair, WrongSettingsAreSentences) {
  {
    const PairPeer peer("FindsAWay", "staged");
    const auto pair = peer.connect("ipc");
    ASSERT_FALSE(pair.ok());
    EXPECT_EQ(pair.error().message, "SPINLOOM_GPU_PEER is ipc here and staged at the other process of the pair");
  }
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  EXPECT_NE(SocketChannel::make(pipe_ends[0]).error().message.find("is no socket"), std::string::npos);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_NE(PairPeer::connect_over(ends[0], "fastest").error().message.find("auto, ipc, staged or packed"),
            std::string::npos);
  PairOptions hurried;
  hurried.patience_ms = 1;
  const auto alone = Pair::connect(*Device::at(0), *SocketChannel::make(ends[0]), hurried);
  EXPECT_EQ(alone.error().code, Code::stalled);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace spinloom::gpu
