// Host time of the live Ethernet NIC: frames of a repeated capture through match, packet memory, a handler and the
// reply, and past the handlers to a host's port. No modelled time; nothing leaves the process, so what a kernel takes
// for a frame is not in it (bench/port_bench.cpp measures that).
//
//   spinloom_ethernet_bench [ROUNDS [FRAMES [WAY]]]
//
// Ways are measured in turn, ROUNDS times; of each way the fastest round is printed, stage by stage.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/folder.hpp"
#include "ethernet/device/card.hpp"
#include "ethernet/device/rule_text.hpp"
#include "ethernet/port/pcap_port.hpp"
#include "nic/packet/build.hpp"
#include "spinloom/frame.h"

namespace {

using namespace spinloom;

template <class T>
T value_of(Result<T> result) {
  if (result) return std::move(result.value());
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}
void must(const Status& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  std::exit(1);
}

constexpr uint32_t capture_frames = 256;

struct Way {
  const char* name;
  const char* handlers;  // a file name with .so or .elf; null: no rule takes the frames
  uint32_t bytes;  // the length of a frame
};

struct Outcome {
  double ns = 0;  // a frame
  std::vector<double> stages;
};

const packet::Endpoints ends{{{2, 0, 0, 0, 0, 9}}, {{2, 0, 0, 0, 0, 1}}, {0x0a000001}, {0x0a000002}};

std::string capture_path(const std::filesystem::path& folder, uint32_t bytes) {
  const std::string path = (folder / (std::to_string(bytes) + ".pcap")).string();
  if (std::filesystem::exists(path)) return path;
  const auto port = value_of(port::open_pcap_port("", path));
  for (uint32_t i = 0; i < capture_frames; ++i) {
    const auto frame = packet::echo_frame(ends, 1, static_cast<uint16_t>(i), packet::FrameBytes(bytes - 42, 7));
    const std::array<port::Bytes, 1> frames{port::Bytes(frame)};
    if (value_of(port->send(frames)) != 1) std::exit(1);
  }
  return path;
}

Outcome measure(const Way& way, const std::string& path, uint64_t frames) {
  auto wire = value_of(port::open_replay_port(path, frames / capture_frames, ""));
  const auto card = value_of(ethernet::Card::create({}, std::move(wire), value_of(port::open_pcap_port("", ""))));
  // Four rule sets, as many as the board has; the frames fit the last, or none.
  const char* const last = way.handlers != nullptr ? "icmp" : "udp:4";
  std::vector<frames::RuleSet> sets;
  for (const char* name : {"udp:1", "udp:2", "udp:3", last}) sets.push_back(value_of(ethernet::rule_set_named(name)));
  must(card->configure(sets));
  if (way.handlers != nullptr) {
    ethernet::ContextSetup setup;
    setup.image = std::string(SPINLOOM_HANDLERS) + "/" + way.handlers;
    setup.constants.resize(sizeof(spl_station_t));
    must(card->install(frames::ContextId{3}, setup));
    must(card->activate(frames::ContextId{3}));
  }
  must(card->run([] { return true; }));
  const frames::Nic& nic = card->nic();
  const uint64_t done =
      way.handlers != nullptr ? nic.count(frames::Count::sent_by_handlers) : nic.count(frames::Count::bypassed);
  if (done != frames || card->to_host_lost() > 0) {
    std::fprintf(stderr, "%s: %llu of %llu frames\n", way.name, static_cast<unsigned long long>(done),
                 static_cast<unsigned long long>(frames));
    std::exit(1);
  }
  Outcome out;
  const double ns = card->stages().ns_per_cycle();
  for (size_t stage = 0; stage < ethernet::stage_count; ++stage) {
    const double spent = ns * static_cast<double>(card->stages()[static_cast<ethernet::Stage>(stage)].cycles);
    out.stages.push_back(spent / static_cast<double>(frames));
    out.ns += out.stages.back();
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const uint64_t frames = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 500'000) / capture_frames * capture_frames;
  const TestFolder folder;
  std::vector<Way> ways{
      {"native", "icmp_echo.so", 64},
      {"native", "icmp_echo.so", 1024},
      {"sandbox", "icmp_echo.elf", 64},
      {"sandbox", "icmp_echo.elf", 1024},
      {"host", nullptr, 64},
      {"host", nullptr, 1024},
  };
  const std::string only = argc > 3 ? argv[3] : "";
  if (!only.empty()) std::erase_if(ways, [&](const Way& way) { return way.name != only; });
  std::vector<Outcome> best(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const Outcome outcome = measure(ways[i], capture_path(folder.path(), ways[i].bytes), frames);
      if (round == 0 || outcome.ns < best[i].ns) best[i] = outcome;
    }
  }
  std::printf("host ns a frame; %llu frames, best of %d rounds\n%-12s %6s %9s %8s",
              static_cast<unsigned long long>(frames), rounds, "way", "bytes", "frames/s", "all");
  for (size_t stage = 0; stage < ethernet::stage_count; ++stage) {
    std::printf(" %9s", ethernet::name_of(static_cast<ethernet::Stage>(stage)));
  }
  std::printf("\n");
  for (size_t i = 0; i < ways.size(); ++i) {
    std::printf("%-12s %6u %9.0f %8.1f", ways[i].name, ways[i].bytes, 1e9 / best[i].ns, best[i].ns);
    for (const double spent : best[i].stages) std::printf(" %9.1f", spent);
    std::printf("\n");
  }
  return 0;
}
