// Host time of 8-byte puts through the live library's C calls, initiator and target in turn on one thread: what the
// code itself costs. Between two processes (portals_bench.c) the caches of two processors come on top. Nanoseconds,
// medians of repeats; no modelled time. The bytes are compared once a repeat.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "live/node/node.hpp"
#include "live/node/progress.hpp"
#include "live/shm/shm_transport.hpp"
#include "portals/calls/process.hpp"
#include "portals4.h"

namespace spinloom::live {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int repeats = 15;
constexpr int batch = 64;
constexpr int batches = 500;
constexpr ptl_match_bits_t bits = 7;
constexpr uint64_t whole_message = uint64_t{1} << 40;

void must(bool good) {
  if (good) return;
  std::fprintf(stderr, "put_bench: a call failed, or other bytes landed\n");
  std::exit(1);
}

class BenchHost final : public calls::Host {
 public:
  BenchHost(Node& node, Progress& progress) : node_(node), progress_(progress) {}
  [[nodiscard]] portals::Port& port() override { return node_; }
  void wait(Time deadline) override { node_.wait_until(deadline); }
  void poll() override { node_.poll(); }
  void begin_call() override { node_.lock().lock(); }
  void end_call() override {
    node_.tell_sleepers();
    progress_.note_call_end();
    node_.lock().unlock();
  }
  void spend_call_time() override {}
  [[nodiscard]] uint32_t size() const override { return 2; }
  [[nodiscard]] uint64_t random() override { return 4; }  // nobody opens one-sided memory here
  [[nodiscard]] uint32_t user() const override { return geteuid(); }
  [[nodiscard]] uint32_t atomic_bytes() const override { return node_.engine().limits().atomic_bytes; }
  [[nodiscard]] Result<calls::HandlerImage> image(std::string_view) override { return calls::HandlerImage{}; }

 private:
  Node& node_;
  Progress& progress_;
};

nic::NicLimits limits() {
  nic::NicLimits limits;
  limits.transfer_bytes = whole_message;
  limits.at_once_bytes = 256;
  return limits;
}

// One of the two ranks, with an entry that counts what lands, and a descriptor that counts what was sent.
class Rank {
 public:
  Rank(uint32_t rank, const std::vector<BusinessCard>& cards, Segment& segment)
      : node_(nic::Rank{rank}, 2, limits(), segment),
        progress_(std::move(*Progress::start(node_, [](uint64_t) {}))),
        shm_(node_, segment, rank, cards, ShmOptions{}, [](int, nic::Rank) {}),
        host_(node_, *progress_),
        process_(host_) {
    node_.add_transport(shm_);
    node_.set_route(nic::Rank{1 - rank}, shm_);
    other_.rank = 1 - rank;
    enter();
    must(PtlInit() == PTL_OK);
    must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, nullptr, &ni_) == PTL_OK);
    ptl_handle_ct_t sent{};
    must(PtlCTAlloc(ni_, &landed_) == PTL_OK && PtlCTAlloc(ni_, &sent) == PTL_OK);
    ptl_pt_index_t portal = 0;
    must(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, 0, &portal) == PTL_OK && portal == 0);
    ptl_me_t entry{};
    entry.start = in_.data();
    entry.length = in_.size();
    entry.ct_handle = landed_;
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE;
    entry.match_id.rank = PTL_RANK_ANY;
    entry.match_bits = bits;
    ptl_handle_me_t entry_handle{};
    must(PtlMEAppend(ni_, portal, &entry, PTL_PRIORITY_LIST, nullptr, &entry_handle) == PTL_OK);
    ptl_md_t descriptor{};
    descriptor.start = out_.data();
    descriptor.length = out_.size();
    descriptor.options = PTL_MD_EVENT_CT_SEND;
    descriptor.eq_handle = PTL_EQ_NONE;
    descriptor.ct_handle = sent;
    must(PtlMDBind(ni_, &descriptor, &md_) == PTL_OK);
  }

  void enter() { calls::Process::enter(&process_); }
  void fill(uint8_t byte) { out_.fill(byte); }
  void put() { must(PtlPut(md_, 0, out_.size(), PTL_NO_ACK_REQ, other_, 0, bits, 0, nullptr, 0) == PTL_OK); }
  void wait(uint64_t messages) {
    ptl_ct_event_t count{};
    expected_ += messages;
    must(PtlCTWait(landed_, expected_, &count) == PTL_OK);
  }
  void check(const Rank& sender) const { must(in_ == sender.out_); }

 private:
  std::array<uint8_t, 8> in_{}, out_{};
  Node node_;
  std::unique_ptr<Progress> progress_;
  ShmTransport shm_;
  BenchHost host_;
  calls::Process process_;
  ptl_process_t other_{};
  ptl_handle_ni_t ni_{};
  ptl_handle_ct_t landed_{};
  ptl_handle_md_t md_{};
  uint64_t expected_ = 0;
};

double nanoseconds(Clock::duration spent, double count) {
  return std::chrono::duration<double, std::nano>(spent).count() / count;
}

void print(const char* what, std::array<double, repeats>& samples) {
  std::sort(samples.begin(), samples.end());
  std::printf("%-58s %9.1f %9.1f\n", what, samples[repeats / 2], samples.front());
}

void run() {
  std::vector<BusinessCard> cards;
  std::vector<Segment> segments;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    BusinessCard card;
    card.machine = *machine_id();
    card.pid = getpid();
    card.nonce = random_secret();
    card.user = geteuid();
    segments.push_back(std::move(*Segment::create(rank, 2, card.nonce)));
    card.file = segments.back().file();
    cards.push_back(card);
  }
  Rank first(0, cards, segments[0]);
  Rank second(1, cards, segments[1]);
  std::array<double, repeats> puts{}, arrivals{}, single{};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Clock::duration sending{}, receiving{};
    first.fill(static_cast<uint8_t>(repeat + 1));
    second.fill(static_cast<uint8_t>(repeat + 101));
    for (int i = 0; i < batches; ++i) {
      first.enter();
      const auto begin = Clock::now();
      for (int j = 0; j < batch; ++j) first.put();
      const auto sent = Clock::now();
      second.enter();
      second.wait(batch);
      sending += sent - begin;
      receiving += Clock::now() - sent;
    }
    second.check(first);
    puts[repeat] = nanoseconds(sending, double{batch} * batches);
    arrivals[repeat] = nanoseconds(receiving, double{batch} * batches);
    const auto begin = Clock::now();
    for (int i = 0; i < batch * batches; ++i) {
      first.enter();
      first.put();
      second.enter();
      second.wait(1);
      second.put();
      first.enter();
      first.wait(1);
    }
    single[repeat] = nanoseconds(Clock::now() - begin, 2.0 * batch * batches);
    first.check(second);
  }
  std::printf("%-58s %9s %9s\n", "8 B puts by C calls, both ranks on one thread, host ns", "median", "least");
  print("PtlPut, one of 64 in a row", puts);
  print("its arrival, matched and counted; PtlCTWait for 64", arrivals);
  print("a single put, and PtlCTWait for it", single);
}

}  // namespace
}  // namespace spinloom::live

int main() {
  spinloom::live::run();
  std::fflush(stdout);
  std::_Exit(0);  // helpers sleep for ever
}
