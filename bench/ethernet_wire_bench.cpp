// Host time of the live Ethernet NIC on a wire, beside a plain loop over the same port that does nothing but forward.
// No modelled time.
//
//   spinloom_ethernet_wire_bench [SECONDS]   for each row and round; 0.3 if there is no other number
//
// The wire is a veth pair in a namespace of the bench's own, the host's port one end of another. 1500 frames of 64 B
// wait before the clock starts, so no sender is in the way, and one core does all: the kernel's part, the NIC's, and
// the delivery at the other end. A second is one of CPU time. Rounds of all rows are interleaved; medians, and the
// ratio to the plain loop in the same round. Every frame must have come at the other end.
#include <chrono>
#include <ctime>

#include "ethernet/device/card.hpp"
#include "ethernet/device/rule_text.hpp"
#include "ethernet/port/open.hpp"
#include "ethernet/port/testing/namespace_support.hpp"
#include "port_rig.hpp"
#include "spinloom/frame.h"

namespace {

using namespace spinloom;
using namespace spinloom::port;
using namespace spinloom::port::bench;

constexpr int rounds = 7;
double seconds = 0.3;

struct Row {
  const char* name;
  const char* handlers;  // a file name with .so or .elf; null: no rule takes the frames; "": a plain loop
  bool returns;  // frames go back to the wire; otherwise they go on to the host's port
  std::vector<double> rates;
  std::vector<double> ratios;
};

void must(const Status& done) {
  if (!done) give_up(done.error());
}

// The part between the two ports: a NIC, or a loop.
class Relay {
 public:
  virtual ~Relay() = default;
  // Does the work that there is; returns true if there was any.
  virtual bool turn() = 0;
};

class Loop final : public Relay {
 public:
  Loop(const std::string& kind, bool returns) : wire_(value_or_exit(open_port(kind + ":nic0"))) {
    if (!returns) host_ = value_or_exit(open_port("packet:nic1"));
    if (returns) forwarder_.emplace(*wire_, true);
  }
  bool turn() override {
    if (forwarder_) return forwarder_->forward_batch() > 0;
    const size_t count = value_or_exit(wire_->receive(frames_));
    for (size_t sent = 0; sent < count;)
      sent += value_or_exit(host_->send(std::span(frames_).subspan(sent, count - sent)));
    return count > 0;
  }

 private:
  PortPointer wire_;
  PortPointer host_;
  std::optional<Forwarder> forwarder_;
  std::array<Bytes, batch_frames> frames_{};
};

class Nic final : public Relay {
 public:
  Nic(const std::string& kind, const char* handlers) {
    PortPointer host = handlers == nullptr ? value_or_exit(open_port("packet:nic1")) : nullptr;
    card_ = value_or_exit(ethernet::Card::create({}, value_or_exit(open_port(kind + ":nic0")), std::move(host)));
    // The NIC has as many rule sets as the board. The frames fit the last one or, if there are no handlers, none.
    std::vector<frames::RuleSet> sets;
    for (const char* name : {"udp:1", "udp:2", "udp:3", handlers == nullptr ? "udp:4" : "udp:9330"}) {
      sets.push_back(value_or_exit(ethernet::rule_set_named(name)));
    }
    must(card_->configure(sets));
    if (handlers == nullptr) return;
    ethernet::ContextSetup setup;
    setup.image = std::string(SPINLOOM_HANDLERS) + "/" + handlers;
    setup.constants.resize(sizeof(spl_station_t));
    must(card_->install(frames::ContextId{3}, setup));
    must(card_->activate(frames::ContextId{3}));
  }
  bool turn() override { return value_or_exit(card_->turn()); }

 private:
  std::unique_ptr<ethernet::Card> card_;
};

// Frames a second of CPU time.
double measure(const Row& row, const std::string& kind) {
  if (!test::make_pair()) give_up(fail(Code::environment, "this kernel has no veth pairs"));
  test::run("ip link delete nic1");
  test::run("ip link add nic1 type veth peer name host1");
  test::run("ip link set host1 addrgenmode none up");
  test::run("ip link set nic1 addrgenmode none up");
  std::unique_ptr<Relay> relay;
  if (row.handlers != nullptr && *row.handlers == '\0') {
    relay = std::make_unique<Loop>(kind, row.returns);
  } else {
    relay = std::make_unique<Nic>(kind, row.handlers);
  }
  const PortPointer sender = value_or_exit(open_port("packet:host0"));
  const PortPointer sink = row.returns ? nullptr : value_or_exit(open_port("packet:host1"));
  FramePort& receiver = row.returns ? *sender : *sink;
  const packet::FrameBytes frame = frame_of(64, {{2, 0, 0, 0, 0, 1}});
  const std::vector<Bytes> frames(batch_frames, frame);
  std::array<Bytes, batch_frames> answers;
  std::clock_t spent = 0;
  size_t sent_frames = 0;
  size_t received = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    for (size_t sent = 0; sent < waiting_frames;) {
      const size_t now = value_or_exit(sender->send(frames));
      sent += now;
      sent_frames += now;
    }
    const std::clock_t begin = std::clock();
    while (relay->turn()) continue;
    spent += std::clock() - begin;
    while (const size_t count = value_or_exit(receiver.receive(answers))) received += count;
  }
  if (received != sent_frames) {
    give_up(fail(Code::fault, row.name, " over ", kind, ": ", received, " of ", sent_frames,
                 " frames came at the other end"));
  }
  return static_cast<double>(received) * CLOCKS_PER_SEC / static_cast<double>(std::max<std::clock_t>(spent, 1));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) seconds = std::strtod(argv[1], nullptr);
  if (const std::string& reason = test::enter_namespace(); !reason.empty()) {
    std::printf("the NIC on a wire: not measured, %s\n", reason.c_str());
    return 0;
  }
  std::printf("frames of 64 B, million a second of CPU time        median   of the plain loop\n");
  for (const char* const kind : {"packet", "xdp"}) {
    if (test::make_pair() && !open_port(std::string(kind) + ":nic0")) {
      std::printf("%s is not measured: this process may not open it\n", kind);
      continue;
    }
    std::vector<Row> rows{{"plain loop, back to the wire", "", true, {}, {}},
                          {"udp_echo, native", "udp_echo.so", true, {}, {}},
                          {"udp_echo, sandbox", "udp_echo.elf", true, {}, {}},
                          {"plain loop, on to the host's port", "", false, {}, {}},
                          {"no rule, on to the host's port", nullptr, false, {}, {}}};
    for (int round = 0; round < rounds; ++round) {
      double plain = 0;
      for (Row& row : rows) {
        row.rates.push_back(measure(row, kind));
        if (row.handlers != nullptr && *row.handlers == '\0') plain = row.rates.back();
        row.ratios.push_back(row.rates.back() / plain);
      }
    }
    for (const Row& row : rows) {
      std::printf("%-7s %-36s %13.3f %15.2f\n", kind, row.name, median(row.rates) * 1e-6, median(row.ratios));
    }
  }
  return 0;
}
