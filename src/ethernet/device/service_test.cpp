// A live NIC's sockets: a program's whole life with its handlers, and what tools read and change.
#include "ethernet/device/service.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "base/byte_order.hpp"
#include "base/private_folder.hpp"
#include "base/random.hpp"
#include "ethernet/device/testing/card_rig.hpp"
#include "nic/registers/control_format.hpp"
#include "nic/spin/testing/replay.hpp"
#include "spinloom/ethernet.h"
#include "spinloom/slmp_file.h"

namespace spinloom::ethernet::test {
namespace {

FrameBytes ping(uint16_t sequence, size_t bytes = 56) { return echo_frame(ends, 7, sequence, FrameBytes(bytes, 0xab)); }

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("XDG_RUNTIME_DIR");
    name_ = "service" + std::to_string(getpid());
    auto made = Service::open(name_, *rig_.card, {});
    ASSERT_TRUE(made.ok()) << made.error().message;
    service_ = std::move(*made);
  }
  // Lets the NIC turn on a thread while `program` runs on this one.
  template <class Program>
  void beside(Program program) {
    std::atomic<bool> stop = false;
    std::thread nic([&] {
      while (!stop) rig_.turn();
      rig_.settle();
    });
    program();
    stop = true;
    nic.join();
  }
  spl_eth* opened(const std::string& handlers, uint32_t context = 0) {
    spl_eth_options options{};
    options.nic = name_.c_str();
    options.context = context;
    options.handlers = handlers.empty() ? nullptr : handlers.c_str();
    spl_eth* eth = nullptr;
    EXPECT_EQ(spl_eth_open(&eth, &options), SPL_ETH_OK) << spl_eth_error();
    return eth;
  }

  Rig rig_;
  std::string name_;
  std::unique_ptr<Service> service_;
};

// The NIC turns addresses round, the program computes the checksum: FPsPIN's mode of host and NIC.
TEST_F(ServiceTest, AProgramHelpsAHandler) {
  for (const bool native : {true, false}) {
    beside([&] {
      spl_eth* const eth = opened(image("frame_ping_host", native));
      ASSERT_NE(eth, nullptr);
      const spl_eth_rules rules = spl_eth_rules_icmp();
      ASSERT_EQ(spl_eth_activate(eth, &rules), SPL_ETH_OK) << spl_eth_error();
      for (uint16_t sequence = 0; sequence < 20; ++sequence) {
        rig_.wire.put(ping(sequence, sequence * 60u));
        uint64_t flag = 0;
        auto* const frame = static_cast<uint8_t*>(spl_eth_next_request(eth, 10'000'000, &flag));
        ASSERT_NE(frame, nullptr);
        constexpr size_t icmp = 14 + 20;
        const size_t bytes = SPL_HOST_FLAG_LENGTH(flag) - icmp;
        frame[icmp + 2] = frame[icmp + 3] = 0;
        const uint16_t sum = packet::checksum({frame + icmp, bytes});
        frame[icmp + 2] = static_cast<uint8_t>(sum >> 8);
        frame[icmp + 3] = static_cast<uint8_t>(sum);
        ASSERT_EQ(spl_eth_push_response(eth, flag, SPL_HOST_FLAG_LENGTH(flag)), SPL_ETH_OK);
      }
      while (rig_.wire.sent() < 20) std::this_thread::yield();
      spl_eth_close(eth);
    });
    ASSERT_EQ(rig_.wire.out.size(), 20u);
    for (uint16_t sequence = 0; sequence < 20; ++sequence) {
      const auto ip = packet::read_ipv4(packet::read_ethernet(rig_.wire.out[sequence])->payload);
      const auto icmp = packet::read_icmp(*ip);
      ASSERT_TRUE(icmp.ok());
      EXPECT_EQ(icmp->type, 0);
      EXPECT_EQ(icmp->sequence, sequence);
    }
    rig_.wire.out.clear();
    EXPECT_EQ(rig_.card->nic().context(ContextId{0}), nullptr);
    rig_.expect_quiet();
  }
}

FrameBytes slmp_packet(uint32_t message, uint32_t offset, uint16_t flags, const FrameBytes& payload) {
  FrameBytes bytes(10);
  const auto store = [&bytes](size_t at, uint32_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<uint8_t>(value >> 8 * (width - 1 - i));
  };
  store(0, flags, 2);
  store(2, message, 4);
  store(6, offset, 4);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return udp_frame(ends, 5000, SPL_SLMP_PORT, bytes);
}

// The offsets and sizes on which python/spinloom/ethernet/nic_receive.py relies.
static_assert(SPL_SLMP_FILE_OFFSET == 135168 && sizeof(spl_host_data) == 648);
static_assert(offsetof(spl_slmp_file_state, armed) == 648 && offsetof(spl_slmp_file_state, told) == 680);
static_assert(offsetof(spl_slmp_file_state, seen) == 696 && sizeof(spl_slmp_file_constants) == 24);

// A message whose packets are lost, repeated, damaged and out of order, between packets of another: its bytes land
// once, in their places, every packet that counts is acknowledged, with a report where it asks, and the program is told
// once.
// Rules: SLMP-15, SLMP-19, SLMP-51, SLMP-52.
TEST_F(ServiceTest, AMessageOfSlmpLandsWhole) {
  for (const bool native : {true, false}) {
    const uint64_t seed = spin::test_seed();
    Random random(seed);
    constexpr uint32_t segment = 700;
    FrameBytes content(segment * 40 + 2);  // the last packet is shorter than a report
    std::set<uint32_t> reports;  // offsets of the packets that ask
    for (uint8_t& byte : content) byte = static_cast<uint8_t>(random.below(256));
    beside([&] {
      spl_eth_options options{};
      options.nic = name_.c_str();
      const std::string path = image("slmp_file", native);
      options.handlers = path.c_str();
      options.host_bytes = SPL_SLMP_FILE_OFFSET + content.size();
      options.constants_bytes = sizeof(spl_slmp_file_constants);
      spl_eth* eth = nullptr;
      ASSERT_EQ(spl_eth_open(&eth, &options), SPL_ETH_OK) << spl_eth_error();
      auto* const constants = static_cast<spl_slmp_file_constants*>(spl_eth_constants(eth, nullptr));
      *constants = {};
      constants->capacity_low = static_cast<uint32_t>(content.size());
      constants->segments = 64;
      auto* const state = static_cast<spl_slmp_file_state*>(spl_eth_state(eth, nullptr));
      state->armed = 1;
      const spl_eth_rules rules = spl_eth_rules_udp(SPL_SLMP_PORT);
      ASSERT_EQ(spl_eth_activate(eth, &rules), SPL_ETH_OK) << spl_eth_error();
      std::vector<FrameBytes> packets;
      for (uint32_t offset = 0; offset < content.size(); offset += segment) {
        const size_t bytes = std::min<size_t>(segment, content.size() - offset);
        const bool last = offset + bytes == content.size();
        const uint16_t asks = random.chance(1, 2) ? SPL_SLMP_SYN | SPL_SLMP_REPORT : SPL_SLMP_SYN;
        if ((asks & SPL_SLMP_REPORT) != 0) reports.insert(offset);
        packets.push_back(slmp_packet(7, offset, last ? SPL_SLMP_EOM | asks : asks,
                                      FrameBytes(content.begin() + offset, content.begin() + offset + bytes)));
      }
      // This one comes before any first packet.
      rig_.wire.put(slmp_packet(9, segment, SPL_SLMP_SYN, FrameBytes(segment, 1)));
      rig_.wire.put(packets[0]);
      std::vector<size_t> order;
      for (size_t i = 1; i < packets.size(); ++i) order.insert(order.end(), 1 + random.below(2), i);
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      for (const size_t which : order) {
        FrameBytes damaged = packets[which];
        damaged[42 + random.below(12)] ^= 0x10;  // SLMP's header, or the first of the payload
        rig_.wire.put(damaged);
        rig_.wire.put(slmp_packet(8, 0, SPL_SLMP_SYN, FrameBytes(10, 2)));
        rig_.wire.put(slmp_packet(7, segment / 2, SPL_SLMP_SYN, FrameBytes(segment, 3)));
        rig_.wire.put(packets[which]);
      }
      spl_eth_notice notice{};
      ASSERT_EQ(spl_eth_next_notice(eth, 30'000'000, &notice), 1) << spin::replay(seed, "ethernet");
      EXPECT_EQ(notice.value, 0u);
      EXPECT_EQ(notice.argument, content.size());
      const auto* const host = static_cast<const uint8_t*>(spl_eth_host_memory(eth, nullptr));
      EXPECT_EQ(std::memcmp(host + SPL_SLMP_FILE_OFFSET, content.data(), content.size()), 0);
      while (rig_.wire.sent() < 1 + order.size()) std::this_thread::yield();
      EXPECT_EQ(state->repeated, order.size() - (packets.size() - 1));
      EXPECT_EQ(state->wrong, order.size());
      EXPECT_EQ(spl_eth_next_notice(eth, 0, &notice), 0);
      spl_eth_close(eth);
    });
    for (const FrameBytes& frame : rig_.wire.out) {
      const auto ip = packet::read_ipv4(packet::read_ethernet(frame)->payload);
      ASSERT_TRUE(ip.ok());
      const auto udp = packet::read_udp(*ip);
      ASSERT_TRUE(udp.ok());
      const uint8_t* const at = udp->payload.data();
      const uint32_t offset = load_be<uint32_t>(at + 6);
      const bool asked = reports.contains(offset);
      ASSERT_EQ(udp->payload.size(), asked ? 14u : 10u);
      EXPECT_EQ(at[0], asked ? 0x30 : 0x20);  // ACK, REPORT
      if (!asked) continue;
      const uint32_t slots = offset + segment > content.size() ? 1024 : 256;  // the last packet's frame is small
      EXPECT_LT(load_be<uint32_t>(at + 10), slots) << "its own is not free";
      EXPECT_GT(load_be<uint32_t>(at + 10), 0u);
    }
    rig_.wire.out.clear();
  }
}

TEST_F(ServiceTest, FramesOfAContextWithoutHandlersComeToTheProgram) {
  beside([&] {
    spl_eth* const eth = opened("", 2);
    const spl_eth_rules rules = spl_eth_rules_all();
    ASSERT_EQ(spl_eth_activate(eth, &rules), SPL_ETH_OK) << spl_eth_error();
    for (uint16_t sequence = 0; sequence < 500; ++sequence) {
      rig_.wire.put(ping(sequence, sequence));
      size_t bytes = 0;
      const void* const frame = spl_eth_next_frame(eth, 10'000'000, &bytes, nullptr);
      ASSERT_NE(frame, nullptr) << sequence << ": " << rig_.card->nic().describe_waiting();
      const FrameBytes expected = ping(sequence, sequence);
      ASSERT_EQ(bytes, expected.size());
      ASSERT_EQ(std::memcmp(frame, expected.data(), bytes), 0);
    }
    spl_eth_close(eth);
  });
  EXPECT_EQ(rig_.card->nic().count(frames::Count::to_memory), 500u);
}

TEST_F(ServiceTest, AProgramGetsTheFirstFreeContext) {
  ContextSetup setup;
  setup.image = image("icmp_echo", true);
  setup.constants = station();
  rig_.install(1, setup);
  beside([&] {
    std::vector<spl_eth*> programs;
    for (const uint32_t expected : {0u, 2u, 3u}) {
      programs.push_back(opened(image("frame_ping_host", true), SPL_ETH_ANY_CONTEXT));
      ASSERT_NE(programs.back(), nullptr);
      EXPECT_EQ(spl_eth_context(programs.back()), expected);
      const spl_eth_rules rules = spl_eth_rules_never();
      EXPECT_EQ(spl_eth_activate(programs.back(), &rules), SPL_ETH_OK) << spl_eth_error();
    }
    spl_eth_options options{};
    options.nic = name_.c_str();
    options.context = SPL_ETH_ANY_CONTEXT;
    spl_eth* none = nullptr;
    EXPECT_EQ(spl_eth_open(&none, &options), SPL_ETH_EXHAUSTED);
    EXPECT_STREQ(spl_eth_error(),
                 "all 4 contexts of this NIC are taken: end one of its programs, or start it with fewer handlers");
    spl_eth_close(programs[1]);
    programs[1] = opened(image("frame_ping_host", true), SPL_ETH_ANY_CONTEXT);
    EXPECT_EQ(spl_eth_context(programs[1]), 2u);
    for (spl_eth* const one : programs) spl_eth_close(one);
  });
}

// One request of a tool over the NIC's socket.
class Tool {
 public:
  explicit Tool(const std::string& nic) : socket_(socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    registers::control_socket_path(nic, *runtime_folder(false)).copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Tool() { close(socket_); }
  void send(const std::vector<uint8_t>& request) const {
    ASSERT_EQ(::send(socket_, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  }
  [[nodiscard]] std::vector<uint8_t> answer() const {
    std::vector<uint8_t> bytes(1 << 17);
    const ssize_t got = recv(socket_, bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  }

 private:
  int socket_;
};

// A tool that asks the NIC for registers by their paths.
class ToolTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    tool_.emplace(name_);
    rig_.settle();  // the NIC has met it
  }
  static uint32_t address(const char* path) {
    const auto map = registers::Map::make({});
    return map->address(*map->named(path));
  }
  registers::Answer ask(registers::RequestKind kind, uint64_t where, uint32_t count, std::vector<uint64_t> words = {}) {
    tool_->send(registers::encode(registers::Request{kind, where, count, std::move(words)}));
    rig_.settle();
    const auto said = registers::decode_answer(tool_->answer());
    EXPECT_TRUE(said.ok());
    return *said;
  }
  uint64_t read(const char* path) {
    const registers::Answer said = ask(registers::RequestKind::read_registers, address(path), 1);
    EXPECT_TRUE(said.succeeded) << said.text;
    return said.words.empty() ? 0 : said.words[0];
  }
  void write(const char* path, uint64_t value) { EXPECT_EQ(refused(path, value), ""); }
  std::string refused(const char* path, uint64_t value) {
    return ask(registers::RequestKind::write_register, address(path), 0, {value}).text;
  }
  std::string status() { return ask(registers::RequestKind::status, 0, 0).text; }

  std::optional<Tool> tool_;
};

// A tool reads counts, and sends pings to the host by a rule that it writes.
TEST_F(ToolTest, ToolsReadCountsAndReplaceRules) {
  ContextSetup setup;
  setup.image = image("icmp_echo", true);
  setup.constants = station();
  rig_.install(1, setup);
  rig_.wire.in = {ping(1)};
  rig_.settle();
  EXPECT_EQ(read("counts/bypassed"), 1u);  // no rule holds yet
  write("me/valid", 0);
  for (const char* path : {"me/mask/4", "me/start/4", "me/end/4"}) write(path, 0);  // rule set 1: every frame
  write("me/start/5", 0);
  write("me/start/6", 0);
  write("me/valid", 1);
  rig_.wire.in = {ping(2)};
  rig_.settle();
  EXPECT_EQ(read("counts/sent_by_handlers"), 1u);
  write("spinloom/active/1", 0);
  rig_.wire.in = {ping(3)};
  rig_.settle();
  EXPECT_EQ(read("counts/inactive"), 1u);
  EXPECT_NE(status().find("context 1: installed, not active"), std::string::npos) << status();
  const uint64_t memory = 0x1c000000 + rig_.card->nic().context(ContextId{1})->constants.offset;
  const registers::Answer word = ask(registers::RequestKind::read_memory, memory, 1);
  ASSERT_TRUE(word.succeeded) << word.text;
  EXPECT_EQ(std::memcmp(word.words.data(), station().data(), 8), 0);
  EXPECT_FALSE(ask(registers::RequestKind::read_memory, 0x1d000000, 1).succeeded);
}

// Registers show the state of the NIC, however it came about.
TEST_F(ToolTest, RegistersShowContextsThatWereNotInstalledByThem) {
  EXPECT_EQ(read("her/valid"), 0u);
  EXPECT_EQ(read("cl/ctrl/0"), 3u);
  for (const bool native : {true, false}) {
    ContextSetup setup;
    setup.image = image("icmp_echo", native);
    setup.constants = station();
    setup.state_bytes = 4096;
    setup.host_bytes = 8192;
    rig_.install(1, setup);
    const spin::Context& context = *rig_.card->nic().context(ContextId{1});
    EXPECT_EQ(read("her/valid"), 1u);
    EXPECT_EQ(read("her/ctx_enabled/0"), 0u);
    EXPECT_EQ(read("her/ctx_enabled/1"), 1u);
    EXPECT_EQ(read("spinloom/active/1"), 1u);
    EXPECT_EQ(read("her_meta/handler_mem_addr/1"), 0x1c000000 + context.state.offset);
    EXPECT_EQ(read("her_meta/handler_mem_size/1"), 4096u);
    EXPECT_EQ(read("her_meta/host_mem_addr_0/1") | read("her_meta/host_mem_addr_1/1") << 32,
              context.handler_host_start);
    EXPECT_EQ(read("her_meta/host_mem_size/1"), 8192u);
    EXPECT_EQ(read("her_meta/hh_size/1"), 0u);
    EXPECT_EQ(read("her_meta/ph_size/1"), 4096u);
    EXPECT_EQ(read("her_meta/ph_addr/1"), native ? 0u : *context.payload_entry);
    EXPECT_NE(status().find("context 1: active"), std::string::npos) << status();
    ASSERT_TRUE(rig_.card->activate(ContextId{1}, false).ok() && rig_.card->remove(ContextId{1}).ok());
    EXPECT_EQ(read("her/valid"), 0u);
    EXPECT_EQ(read("her_meta/ph_size/1"), 0u);
  }
}

TEST_F(ToolTest, AWriteWithoutAnEffectIsRefusedWithTheReason) {
  ContextSetup setup;
  setup.image = test_image("phases", true);
  ASSERT_TRUE(rig_.card->install(ContextId{1}, setup).ok());
  const auto says = [this](const char* path, uint64_t value, const char* why) {
    const std::string said = refused(path, value);
    EXPECT_NE(said.find(path), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  says("her/valid", 0, "from files");
  says("her/ctx_enabled/0", 1, "from files");
  says("her_meta/ph_addr/1", 0x1d000400, "from files");
  says("spinloom/init_size/1", 0, "from files");
  says("cl/ctrl/0", 1, "a thread of its process");
  says("cl/ctrl/1", 1, "a thread of its process");
  says("spinloom/core_mask/1", 1, "a thread of its process");
  says("spinloom/active/2", 0, "context 2 is not installed");
  write("cl/ctrl/0", 3);  // the value that the board's library writes, and which is already set
  EXPECT_EQ(read("cl/ctrl/1"), 0u);
  EXPECT_EQ(read("her/valid"), 1u);
}

// The payload handler runs without a frame, where none reaches it.
TEST_F(ToolTest, AToolCallsAContext) {
  ContextSetup setup;
  setup.image = image("icmp_echo", false);
  setup.constants = station();
  rig_.install(1, setup);
  EXPECT_EQ(read("spinloom/call/1"), 0u);
  write("spinloom/call/1", 1);
  EXPECT_EQ(read("spinloom/call/1"), 1u);
  EXPECT_EQ(rig_.card->nic().count(frames::Count::host_runs), 1u);
  EXPECT_NE(refused("spinloom/call/2", 1).find("not installed"), std::string::npos);
}

TEST_F(ServiceTest, ASecondNicOfTheNameIsRefused) {
  Rig other;
  const auto second = Service::open(name_, *other.card, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("another name"), std::string::npos);
}

TEST_F(ServiceTest, HandlersOfAProgramThatAreNoImageAreRefusedWithTheReason) {
  beside([&] {
    spl_eth_options options{};
    options.nic = name_.c_str();
    options.handlers = "/proc/self/status";
    spl_eth* eth = nullptr;
    EXPECT_EQ(spl_eth_open(&eth, &options), SPL_ETH_INVALID);
    EXPECT_STRNE(spl_eth_error(), "");
    options.handlers = nullptr;
    options.state_bytes = size_t{1} << 40;
    EXPECT_EQ(spl_eth_open(&eth, &options), SPL_ETH_EXHAUSTED);
    options.state_bytes = 0;
    options.host_bytes = size_t{1} << 50;
    EXPECT_EQ(spl_eth_open(&eth, &options), SPL_ETH_EXHAUSTED);
    EXPECT_EQ(eth, nullptr);
  });
}

}  // namespace
}  // namespace spinloom::ethernet::test
