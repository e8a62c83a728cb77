// The desk and its programs: memory, requests, notices, frames, counters; programs that die; folders that are not safe.
#include "ethernet/host/desk.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "base/random.hpp"
#include "base/testing/folder.hpp"
#include "ethernet/host/shared_memory.hpp"
#include "nic/frames/nic.hpp"
#include "spinloom/fpspin_compat.h"
#include "spinloom/frame.h"

namespace spinloom::host {
namespace {

// An office whose contexts have memory but no handlers: the test does what these would do.
class TestNic final : public NicServices {
 public:
  TestNic() : nic(std::move(*SharedMemory::create(1 << 20))) {}
  Result<InstalledContext> install(const Request& request) override {
    if (request.context > 1) return fail(Code::exhausted, "there is no context ", request.context);
    if (open.count(request.context) != 0) return fail(Code::invalid, "context ", request.context, " is in use");
    SPL_ASSIGN(open[request.context], SharedMemory::create(request.host_bytes));
    return InstalledContext{request.context, nic.descriptor(),  open[request.context].descriptor(), 1 << 20, 4096,
                            1 << 19,         request.host_bytes};
  }
  Status activate(uint32_t context, const frames::RuleSet& rules) override {
    active[context] = rules;
    return {};
  }
  Status deactivate(uint32_t context) override {
    active.erase(context);
    return {};
  }
  Status remove(uint32_t context) override {
    active.erase(context);
    if (busy) return fail(Code::invalid, "frames are under way");
    open.erase(context);
    return {};
  }
  Status invoke(uint32_t, uint32_t message) override {
    invoked = message;
    return {};
  }
  void frames_read(uint32_t, uint32_t entries) override { read += entries; }
  const frames::Counts& counts() const override { return counted; }

  SharedMemory nic;
  std::map<uint32_t, SharedMemory> open;
  std::map<uint32_t, frames::RuleSet> active;
  frames::Counts counted{1, 2, 3};
  std::atomic<uint32_t> invoked = 0;
  std::atomic<uint32_t> read = 0;
  std::atomic<bool> busy = false;
};

// A NIC's desk on a thread of its own.
class DeskTest : public testing::Test {
 protected:
  void SetUp() override {
    name_ = "test" + std::to_string(getpid());
    auto made = Desk::open(name_, nic_);
    ASSERT_TRUE(made.ok()) << made.error().message;
    desk_ = std::move(*made);
    thread_ = std::thread([this] {
      while (!stop_) {
        desk_->serve();
        std::this_thread::yield();
      }
    });
  }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void TearDown() override { stop(); }
  spl_eth* opened(uint32_t context = 0) {
    spl_eth_options options{};
    options.nic = name_.c_str();
    options.context = context;
    spl_eth* eth = nullptr;
    EXPECT_EQ(spl_eth_open(&eth, &options), SPL_ETH_OK) << spl_eth_error();
    return eth;
  }

  TestNic nic_;
  std::string name_;
  std::unique_ptr<Desk> desk_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
};

TEST_F(DeskTest, MemoryIsShared) {
  spl_eth* const eth = opened();
  size_t bytes = 0;
  auto* const state = static_cast<uint8_t*>(spl_eth_state(eth, &bytes));
  EXPECT_EQ(bytes, 64u << 10);
  state[100] = 42;
  EXPECT_EQ(nic_.nic.bytes()[4096 + 100], 42);
  nic_.open[0].bytes()[7] = 43;
  EXPECT_EQ(static_cast<uint8_t*>(spl_eth_host_memory(eth, nullptr))[7], 43);
  uint64_t counts[3] = {};
  EXPECT_EQ(spl_eth_counts(eth, counts, 3), frames::count_kinds);
  EXPECT_EQ(counts[2], 3u);
  EXPECT_EQ(spl_eth_invoke(eth, 9), SPL_ETH_OK);
  EXPECT_EQ(nic_.invoked, 9u);
  spl_eth_close(eth);
  stop();
  EXPECT_TRUE(nic_.open.empty());
}

// To make a file longer than its process may is a signal, which would end a user's program.
TEST_F(DeskTest, MemoryBeyondTheLimitOfFilesIsRefused) {
  const auto limited = [] {
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto fits = SharedMemory::create(1 << 20);
    const auto longer = SharedMemory::create((1 << 20) + 1);
    if (!longer.ok()) std::fputs(longer.error().message.c_str(), stderr);
    _exit(fits.ok() && !longer.ok() ? 0 : 1);
  };
  EXPECT_EXIT(limited(), testing::ExitedWithCode(0), "1048577 B of memory to share: File too large");
}

// Rules: FPS-56, FPS-58, FPS-59.
TEST_F(DeskTest, RequestsAreAnsweredWhereTheHandlerLooks) {
  spl_eth* const eth = opened();
  uint64_t flag = 0;
  EXPECT_EQ(spl_eth_next_request(eth, 0, &flag), nullptr);
  uint8_t* const page = nic_.open[0].bytes().data() + 5 * SPL_HOST_PAGE_BYTES;
  page[SPL_HOST_PAGE_PAYLOAD] = 17;
  const uint64_t asked = SPL_HOST_FLAG(1, 300, 5);
  std::memcpy(page, &asked, sizeof asked);
  auto* const payload = static_cast<uint8_t*>(spl_eth_next_request(eth, 1'000'000, &flag));
  ASSERT_NE(payload, nullptr);
  EXPECT_EQ(*payload, 17);
  EXPECT_EQ(SPL_HOST_FLAG_LENGTH(flag), 300u);
  EXPECT_EQ(spl_eth_pop_request(eth, 5, &flag), nullptr);  // a request is popped once
  ASSERT_EQ(spl_eth_push_response(eth, asked, 77), SPL_ETH_OK);
  const auto* const data = reinterpret_cast<const spl_host_data*>(nic_.nic.bytes().data() + 4096);
  EXPECT_EQ(data->response[5], SPL_HOST_FLAG(1, 77, 5));
  EXPECT_EQ(spl_eth_push_response(eth, SPL_HOST_FLAG(1, 0, 40), 0), SPL_ETH_INVALID);
  spl_eth_close(eth);
}

TEST_F(DeskTest, NoticesComeInOrderAndFreeTheirRing) {
  spl_eth* const eth = opened();
  auto* const data = reinterpret_cast<spl_host_data*>(nic_.nic.bytes().data() + 4096);
  auto* const ring = reinterpret_cast<spl_host_notice*>(nic_.open[0].bytes().data() + SPL_HOST_RING_OFFSET);
  for (uint32_t number = 1; number <= 2 * SPL_HOST_RING_NOTICES; ++number) {
    ring[(number - 1) % SPL_HOST_RING_NOTICES] = {uint64_t{number} << 40, number * 3, number};
    spl_eth_notice notice{};
    ASSERT_EQ(spl_eth_next_notice(eth, 1'000'000, &notice), 1);
    EXPECT_EQ(notice.argument, uint64_t{number} << 40);
    EXPECT_EQ(notice.value, number * 3);
    EXPECT_EQ(data->notices_read, number);
  }
  EXPECT_EQ(spl_eth_next_notice(eth, 0, nullptr), 0);
  spl_eth_close(eth);
}

TEST_F(DeskTest, FramesAreReadAndTheNicIsTold) {
  spl_eth* const eth = opened();
  const uint64_t entries = nic_.open[0].bytes().size() / frames::ring_entry_bytes;
  for (uint32_t number = 1; number <= entries; ++number) {
    const frames::RingHeader header{number, 60, number + 5, 0};
    uint8_t* const entry = nic_.open[0].bytes().data() + (number - 1) % entries * frames::ring_entry_bytes;
    entry[sizeof header] = static_cast<uint8_t>(number);
    std::memcpy(entry, &header, sizeof header);
    size_t bytes = 0;
    uint32_t message = 0;
    const auto* const found = static_cast<const uint8_t*>(spl_eth_next_frame(eth, 1'000'000, &bytes, &message));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, static_cast<uint8_t>(number));
    EXPECT_EQ(bytes, 60u);
    EXPECT_EQ(message, number + 5);
  }
  EXPECT_GE(nic_.read, entries / 2);
  spl_eth_close(eth);
}

// Rules: FPS-60.
TEST_F(DeskTest, CountersAreThoseOfTheState) {
  spl_eth* const eth = opened();
  auto* const data = reinterpret_cast<spl_host_data*>(nic_.nic.bytes().data() + 4096);
  data->counter[3].sum = 500;
  data->counter[3].count = 20;
  uint32_t sum = 0;
  uint32_t count = 0;
  EXPECT_EQ(spl_eth_counter(eth, 3, &sum, &count), SPL_ETH_OK);
  EXPECT_EQ(sum, 500u);
  EXPECT_EQ(count, 20u);
  EXPECT_EQ(spl_eth_clear_counter(eth, 3), SPL_ETH_OK);
  EXPECT_EQ(data->counter[3].sum, 0u);
  EXPECT_EQ(spl_eth_counter(eth, 16, &sum, &count), SPL_ETH_INVALID);
  spl_eth_close(eth);
}

TEST_F(DeskTest, ARefusalHasASentence) {
  spl_eth* eth = nullptr;
  spl_eth_options options{};
  options.nic = name_.c_str();
  options.context = 7;
  EXPECT_EQ(spl_eth_open(&eth, &options), SPL_ETH_EXHAUSTED);
  EXPECT_EQ(eth, nullptr);
  EXPECT_STREQ(spl_eth_error(), "there is no context 7");
  options.nic = "nobody";
  EXPECT_EQ(spl_eth_open(&eth, &options), SPL_ETH_NO_NIC);
  EXPECT_NE(std::string(spl_eth_error()).find("spinloom nic run"), std::string::npos);
  options.handlers = "/no/such/file.so";
  options.nic = name_.c_str();
  EXPECT_FALSE(Desk::open(name_, nic_).ok());  // one NIC of a name
}

TEST_F(DeskTest, AProgramThatIsKilledLosesItsContexts) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    spl_eth* const eth = opened(1);
    const spl_eth_rules rules = spl_eth_rules_all();
    _exit(spl_eth_activate(eth, &rules) == SPL_ETH_OK ? 0 : 1);
  }
  nic_.busy = true;  // its frames are still under way when it dies
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  while (desk_->programs() > 0) std::this_thread::yield();
  EXPECT_TRUE(nic_.active.empty());
  nic_.busy = false;
  while (!nic_.open.empty()) std::this_thread::yield();
}

// The life of a host program for FPsPIN: init, requests and responses, counters, memory, exit.
// Rules: FPS-27, FPS-56, FPS-59, FPS-60, FPS-62, FPS-92.
TEST_F(DeskTest, ProgramsForFpspinFindTheirLibrary) {
  setenv("SPINLOOM_NIC_NAME", name_.c_str(), 1);
  fpspin_ctx_t ctx;
  fpspin_ruleset_t rules;
  fpspin_ruleset_slmp(&rules);
  ASSERT_TRUE(fpspin_init(&ctx, "/dev/pspin0", nullptr, 1, &rules, 1, FPSPIN_HOSTDMA_PAGES_DEFAULT + 2));
  EXPECT_EQ(ctx.mmap_len, 18u * 4096);
  const frames::RuleSet& installed = nic_.active.at(1);
  EXPECT_EQ(installed.rules[2], (frames::Rule{9, 0x0000ffff, 0x00007224, 0x00007224}));
  EXPECT_EQ(installed.last_frame, (frames::Rule{10, 0x00800000, 0x00800000, 0x00800000}));
  fpspin_flag_t flag;
  EXPECT_EQ(fpspin_pop_req(&ctx, 3, &flag), nullptr);
  const uint64_t asked = SPL_HOST_FLAG(9, 1000, 3);
  std::memcpy(static_cast<uint8_t*>(ctx.cpu_addr) + 3 * PAGE_SIZE, &asked, sizeof asked);
  EXPECT_EQ(fpspin_pop_req(&ctx, 3, &flag), static_cast<uint8_t*>(ctx.cpu_addr) + 3 * PAGE_SIZE + DMA_ALIGN);
  EXPECT_EQ(uint32_t{flag.len}, 1000u);
  EXPECT_EQ(uint16_t{flag.hpu_id}, 3u);
  fpspin_flag_t answer{};
  answer.len = 77;
  fpspin_push_resp(&ctx, 3, answer);
  auto* const data = reinterpret_cast<spl_host_data*>(nic_.nic.bytes().data() + 4096);
  EXPECT_EQ(data->response[3], SPL_HOST_FLAG(9, 77, 3));
  data->counter[0].sum = 300;
  data->counter[0].count = 4;
  EXPECT_EQ(fpspin_get_cycles(&ctx, 0), 75.0);
  EXPECT_EQ(fpspin_get_avg_cycles(&ctx), 75u);
  fpspin_clear_counter(&ctx, 0);
  EXPECT_EQ(fpspin_get_counter(&ctx, 0).count, 0u);
  uint32_t word = 0x1234;
  fpspin_write_memory(&ctx, ctx.handler_mem.addr + 8, &word, sizeof word);
  EXPECT_EQ(std::memcmp(nic_.nic.bytes().data() + 4096 + SPL_PSPIN_HANDLER_MEM + 8, &word, sizeof word), 0);
  fpspin_exit(&ctx);
  EXPECT_FALSE(fpspin_init(&ctx, "/dev/pspin0", nullptr, 9, &rules, 1, FPSPIN_HOSTDMA_PAGES_DEFAULT));
  unsetenv("SPINLOOM_NIC_NAME");
}

// A folder for sockets that only this user may change.
class SocketsTest : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1); }
  void TearDown() override { unsetenv("XDG_RUNTIME_DIR"); }
  [[nodiscard]] static std::string refusal_to_a_program() {
    spl_eth_options options{};
    options.nic = "red";
    spl_eth* eth = nullptr;
    EXPECT_NE(spl_eth_open(&eth, &options), SPL_ETH_OK);
    return spl_eth_error();
  }

  const TestFolder place_;
  const std::string folder_ = place_.path().string();
};

TEST_F(SocketsTest, ANicOfAnotherUserIsNotAsked) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can listen as another user";
  constexpr uid_t stranger = 12345;
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int listening = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    desk_path("red", false)->copy(address.sun_path, sizeof address.sun_path - 1);
    const bool bound = bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const bool listens = bound && seteuid(stranger) == 0 && listen(listening, 1) == 0;
    if (write(ready[1], listens ? "y" : "n", 1) == 1) pause();
    _exit(0);
  }
  char listens = 0;
  ASSERT_EQ(read(ready[0], &listens, 1), 1);
  ASSERT_EQ(listens, 'y');
  const std::string refusal = refusal_to_a_program();
  EXPECT_NE(refusal.find("is run by user 12345, not by this one (0)"), std::string::npos) << refusal;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int end : ready) close(end);
}

TEST_F(SocketsTest, ALinkInThePlaceOfALockIsNotFollowed) {
  const std::string kept = folder_ + "/kept";
  const std::string lock = *desk_path("red", false) + ".lock";
  ASSERT_EQ(symlink(kept.c_str(), lock.c_str()), 0);
  TestNic office;
  const auto made = Desk::open("red", office);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find(lock), std::string::npos) << made.error().message;
  EXPECT_FALSE(std::filesystem::exists(kept));
}

TEST_F(SocketsTest, AFolderThatOthersMayChangeIsRefused) {
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  TestNic office;
  const auto made = Desk::open("red", office);
  ASSERT_FALSE(made.ok());
  for (const std::string& said : {made.error().message, refusal_to_a_program()}) {
    EXPECT_NE(said.find("XDG_RUNTIME_DIR: " + folder_ + " may be changed by other users"), std::string::npos) << said;
  }
}

TEST_F(DeskTest, WhateverIsSentTheDeskGoesOn) {
  Random random(5);
  for (int program = 0; program < 20; ++program) {
    const int one = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    desk_path(name_, false)->copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    for (int record = 0; record < 20; ++record) {
      Request request;
      std::vector<uint8_t> bytes(sizeof request);
      std::memcpy(bytes.data(), &request, sizeof request);
      const uint64_t changes = random.below(8);
      for (uint64_t change = 0; change < changes; ++change) {
        bytes[random.below(64)] = static_cast<uint8_t>(random.below(256));
      }
      bytes.resize(random.below(4) == 0 ? random.below(2 * sizeof request) : sizeof request);
      (void)send(one, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(one);
  }
  while (desk_->programs() > 0) std::this_thread::yield();
  spl_eth* const eth = opened(0);
  spl_eth_close(eth);
}

}  // namespace
}  // namespace spinloom::host
