// Host time of frame ports: frames a second that one core takes from a port, and sends back over it, unchanged but for
// their addresses: a plain forward loop, as the peer for what a NIC does with frames. Rows without "and back" only take
// them. No modelled time.
//
//   spinloom_port_bench [SECONDS]   for each row and round; 0.3 if there is no other number
//
// The interfaces are a veth pair in a namespace of the bench's own. "with a sender": a second process sends as fast as
// it can from the other end, and a row is no faster than that sender, whose frames a second stand beside it. "from full
// rings": 1500 frames wait before the clock starts, so that no sender is in the way and one core does all, the kernel's
// part and the delivery at the other end, too; a second is one of CPU time, which other processes disturb less. Rounds
// of all rows are interleaved; medians, and the least and the most of the last. The file rows have no kernel and no
// sender: frames come from memory, and go nowhere.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <vector>

#include "ethernet/port/open.hpp"
#include "ethernet/port/pcap_file.hpp"
#include "ethernet/port/testing/namespace_support.hpp"
#include "port_rig.hpp"

namespace spinloom::port {
namespace {

using namespace bench;

constexpr int rounds = 7;
double seconds = 0.3;

// A process that sends one frame for ever; its end is the end of this object.
class Sender {
 public:
  explicit Sender(const packet::FrameBytes& frame) {
    process_ = fork();
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const PortPointer port = value_or_exit(open_port("packet:host0"));
    const std::vector<Bytes> frames(batch_frames, frame);
    for (;;) (void)value_or_exit(port->send(frames));
  }
  ~Sender() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

 private:
  pid_t process_;
};

struct Rate {
  double forwarded = 0;  // frames a second, as are the others
  double sent = 0;
  double from_full_rings = 0;
};

double full_rings_rate(FramePort& port, bool sends_back, const packet::FrameBytes& frame) {
  const PortPointer host = value_or_exit(open_port("packet:host0"));
  Forwarder forwarder(port, sends_back);
  const std::vector<Bytes> frames(batch_frames, frame);
  std::array<Bytes, batch_frames> answers;
  std::clock_t spent = 0;
  size_t forwarded = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    for (size_t sent = 0; sent < waiting_frames; sent += value_or_exit(host->send(frames))) continue;
    const std::clock_t begin = std::clock();
    while (const size_t count = forwarder.forward_batch()) forwarded += count;
    spent += std::clock() - begin;
    while (value_or_exit(host->receive(answers)) > 0) continue;
  }
  return static_cast<double>(forwarded) * CLOCKS_PER_SEC / static_cast<double>(std::max<std::clock_t>(spent, 1));
}

Rate over_interface(const std::string& kind, size_t frame_bytes, bool sends_back) {
  if (!test::make_pair()) give_up(fail(Code::environment, "this kernel has no veth pairs"));
  const PortPointer port = value_or_exit(open_port(kind + ":nic0"));
  const packet::FrameBytes frame = frame_of(frame_bytes, port->mac());
  Rate rate;
  rate.from_full_rings = full_rings_rate(*port, sends_back, frame);
  Forwarder forwarder(*port, sends_back);
  const Sender sender(frame);
  const auto run = [&](double length) {
    const auto begin = std::chrono::steady_clock::now();
    size_t frames = 0;
    double passed = 0;
    while (passed < length) {
      for (int i = 0; i < 16; ++i) frames += forwarder.forward_batch();
      passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return static_cast<double>(frames) / passed;
  };
  run(seconds / 3);  // this run lasts until the sender is there
  const uint64_t lost = port->counters().dropped;
  const auto begin = std::chrono::steady_clock::now();
  rate.forwarded = run(seconds);
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rate.sent = rate.forwarded + static_cast<double>(port->counters().dropped - lost) / passed;
  return rate;
}

Rate over_memory(const std::string& folder, size_t frame_bytes, bool sends_back) {
  const std::string path = text(folder, "/", frame_bytes, ".pcap");
  if (!std::filesystem::exists(path)) {
    auto writer = value_or_exit(PcapWriter::create(path));
    const auto frame = frame_of(frame_bytes, mac_for("pcap"));
    for (int i = 0; i < 1024; ++i) {
      if (const auto written = writer.append(frame, i); !written) give_up(written.error());
    }
    if (const auto written = writer.flush(); !written) give_up(written.error());
  }
  const PortPointer port = value_or_exit(open_port(text("replay:", path, ",", 1'000'000'000)));
  Forwarder forwarder(*port, sends_back);
  const auto begin = std::chrono::steady_clock::now();
  size_t frames = 0;
  double passed = 0;
  while (passed < seconds) {
    for (int i = 0; i < 1024; ++i) frames += forwarder.forward_batch();
    passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  const double rate = static_cast<double>(frames) / passed;
  return {rate, rate, rate};
}

struct Row {
  const char* port;
  size_t frame_bytes;
  bool sends_back;
  std::vector<double> forwarded;
  std::vector<double> sent;
  std::vector<double> from_full_rings;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2] * 1e-6;
}

}  // namespace
}  // namespace spinloom::port

int main(int argc, char** argv) {
  using namespace spinloom;
  using namespace spinloom::port;
  if (argc > 1) seconds = std::strtod(argv[1], nullptr);
  if (const std::string& reason = test::enter_namespace(); !reason.empty()) {
    std::printf("frame ports: not measured, %s\n", reason.c_str());
    return 0;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "spinloom-ports-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) give_up(fail(Code::environment, "cannot make a folder in ", folder));
  std::vector<Row> rows;
  for (const size_t frame_bytes : {size_t{64}, size_t{1514}}) {
    for (const char* const port : {"packet", "xdp", "replay"}) {
      for (const bool sends_back : {false, true}) rows.push_back({port, frame_bytes, sends_back, {}, {}, {}});
    }
  }
  if (test::make_pair()) {
    if (const auto xdp = open_port("xdp:nic0"); !xdp) {
      std::printf("xdp is not measured: %s\n", xdp.error().message.c_str());
      std::erase_if(rows, [](const Row& row) { return std::string_view(row.port) == "xdp"; });
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) {
      const bool memory = std::string_view(row.port) == "replay";
      const Rate rate = memory ? over_memory(folder, row.frame_bytes, row.sends_back)
                               : over_interface(row.port, row.frame_bytes, row.sends_back);
      row.forwarded.push_back(rate.forwarded);
      row.sent.push_back(rate.sent);
      row.from_full_rings.push_back(rate.from_full_rings);
    }
  }
  std::filesystem::remove_all(folder);
  std::printf("Million frames a second:      with a sender   it sends   from full rings    least     most\n");
  for (const Row& row : rows) {
    const auto [least, most] = std::minmax_element(row.from_full_rings.begin(), row.from_full_rings.end());
    std::printf("%-7s %5zu bytes %-9s %14.3f %10.3f %17.3f %8.3f %8.3f\n", row.port, row.frame_bytes,
                row.sends_back ? "and back" : "", median(row.forwarded), median(row.sent), median(row.from_full_rings),
                *least * 1e-6, *most * 1e-6);
  }
  return 0;
}
