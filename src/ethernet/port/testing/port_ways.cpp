#include "ethernet/port/testing/port_ways.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "base/testing/patience.hpp"
#include "nic/packet/build.hpp"

namespace spinloom::port::test {
namespace {

constexpr uint16_t experimental_type = 0x88b5;

bool wait_for(FramePort& port, int16_t what) {
  pollfd place{port.descriptor(), what, 0};
  const auto limit = std::chrono::milliseconds(patient(std::chrono::seconds(20)));
  return port.descriptor() >= 0 && poll(&place, 1, static_cast<int>(limit.count())) > 0;
}

FrameBytes frame_of(Random& random, Kind kind) {
  packet::Ethernet header = packet::test::random_ethernet(random, experimental_type);
  header.source.bytes[0] = 2;
  header.target.bytes[0] &= 0xfe;
  if (kind == Kind::broadcast) header.target = packet::broadcast;
  header.tag_count = kind == Kind::tagged ? static_cast<uint8_t>(random.between(1, 2)) : 0;
  for (packet::VlanTag& tag : header.tags) tag = {packet::ether_type::vlan, static_cast<uint16_t>(random.next())};
  const size_t bytes = kind == Kind::longest ? 1500 : 46 + random.below(1400);
  return packet::ethernet_frame(header, packet::test::random_bytes(random, bytes));
}

Frames frames_of(Random& random, const Step& step) {
  Frames out;
  for (size_t i = 0; i < step.count; ++i) out.push_back(frame_of(random, step.kind));
  return out;
}

bool comes(const Step& step) { return step.what == Step::What::come || step.what == Step::What::answer; }

Status same(const char* what, const Frames& found, std::span<const FrameBytes> expected) {
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), expected.size()));
  const auto wrong = std::mismatch(found.begin(), end, expected.begin()).first;
  if (wrong == end && found.size() == expected.size()) return {};
  return fail(Code::mismatch, what, ": ", found.size(), " frames of ", expected.size(),
              ", the first wrong one is number ", wrong - found.begin());
}

class Run {
 public:
  Run(const PortWay& way, Wire& wire, std::span<const FrameBytes> coming)
      : way_(way), wire_(wire), coming_(coming), before_(wire.port().counters()) {}

  Status step(const Step& step, Random& random) {
    switch (step.what) {
      case Step::What::come: {
        SPL_TRY(wire_.give(next(step.count)));
        SPL_ASSIGN(const Frames found, received(wire_.port(), step.count, step.batch));
        return same("what came", found, last_);
      }
      case Step::What::go: return go(frames_of(random, step));
      case Step::What::answer: return answer(step, random);
      case Step::What::refuse: return refuse(random);
    }
    return {};
  }

  Status end() {
    const Counters now = wire_.port().counters();
    if (now.sent - before_.sent != sent_.size() + read_) return fail(Code::mismatch, "sent ", now.sent - before_.sent);
    if (now.received - before_.received < came_) return fail(Code::mismatch, "received ", now.received, " of ", came_);
    if (now.truncated != 0 || now.dropped != 0) {
      return fail(Code::mismatch, now.truncated, " frames were truncated, ", now.dropped, " dropped");
    }
    SPL_TRY(nothing_more());
    return read_sent();
  }

 private:
  std::span<const FrameBytes> next(size_t count) {
    last_ = coming_.subspan(came_, count);
    came_ += count;
    return last_;
  }

  // No frame comes twice, and none of those that the port has sent.
  Status nothing_more() {
    std::vector<Bytes> batch(32);
    SPL_ASSIGN(const size_t came, wire_.port().receive(batch));
    for (const Bytes frame : std::span(batch).first(came)) {
      const auto header = packet::read_ethernet(frame);
      if (header.ok() && header->type == experimental_type) return fail(Code::mismatch, "a frame too many came");
    }
    return {};
  }

  Status go(Frames frames) {
    SPL_TRY(send_all(wire_.port(), frames));
    sent_.insert(sent_.end(), frames.begin(), frames.end());
    for (FrameBytes& frame : frames) std::fill(frame.begin(), frame.end(), uint8_t{0xee});  // send() has copied it
    return way_.is_read_at_end ? Status() : read_sent();
  }

  Status read_sent() {
    SPL_ASSIGN(const Frames found, wire_.taken(sent_.size()));
    SPL_TRY(same("what was sent", found, sent_));
    read_ += sent_.size();
    sent_.clear();
    return {};
  }

  // Frames stay until the next receive(), whatever is sent.
  Status answer(const Step& step, Random& random) {
    SPL_TRY(wire_.give(next(step.count)));
    Frames found;
    std::vector<Bytes> batch(step.batch);
    while (found.size() < step.count) {
      SPL_ASSIGN(const size_t came,
                 wire_.port().receive(std::span(batch).first(std::min(step.batch, step.count - found.size()))));
      if (came == 0 && !wait_for(wire_.port(), POLLIN)) break;
      if (came > 0) SPL_TRY(go(frames_of(random, {Step::What::go, came})));
      for (const Bytes frame : std::span(batch).first(came)) {
        const auto header = packet::read_ethernet(frame);
        if (header.ok() && header->type == experimental_type) found.emplace_back(frame.begin(), frame.end());
      }
    }
    return same("what came before the answers", found, last_);
  }

  Status refuse(Random& random) {
    FramePort& port = wire_.port();
    const FrameBytes good = frame_of(random, Kind::any);
    for (const size_t bytes : {size_t{0}, size_t{13}, port.mtu() + 15, port.mtu() + 1000}) {
      const FrameBytes wrong(bytes, 1);
      if (port.send(std::vector<Bytes>{good, wrong}).ok())
        return fail(Code::mismatch, "a frame of ", bytes, " B was sent");
    }
    return {};
  }

  const PortWay& way_;
  Wire& wire_;
  std::span<const FrameBytes> coming_;
  std::span<const FrameBytes> last_;
  Counters before_;
  size_t came_ = 0;
  size_t read_ = 0;
  Frames sent_;  // those that nobody has read
};

Status hold_seed(const Scenario& scenario, const PortWay& way, uint64_t seed) {
  Random random(seed, scenario.name);
  Frames coming;
  for (int round = 0; round < scenario.rounds; ++round) {
    for (const Step& step : scenario.steps) {
      if (!comes(step)) continue;
      const Frames more = frames_of(random, step);
      coming.insert(coming.end(), more.begin(), more.end());
    }
  }
  SPL_ASSIGN(const std::unique_ptr<Wire> wire, way.make(coming));
  Run run(way, *wire, coming);
  for (int round = 0; round < scenario.rounds; ++round) {
    for (const Step& step : scenario.steps) SPL_TRY(run.step(step, random));
  }
  return run.end();
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  using What = Step::What;
  static const std::vector<Scenario> all{
      {"FramesCome", {{What::come, 300}}},
      {"FramesGo", {{What::go, 300}}},
      {"OneAtATime", {{What::come, 50, Kind::any, 1}, {What::go, 1}}},
      {"BothWays", {{What::come, 100, Kind::any, 7}, {What::go, 100}}, 3},
      {"RingsGoAround", {{What::come, 200}, {What::go, 200}}, 50},  // rings have a few thousand places
      {"TagsStay", {{What::come, 20, Kind::tagged}}},
      {"FramesForEverybody", {{What::come, 3, Kind::broadcast}, {What::go, 3, Kind::broadcast}}},
      {"TheLongestGoesOver", {{What::come, 5, Kind::longest}, {What::go, 5, Kind::longest}}},
      {"AnswersLeaveWhatCame", {{What::answer, 60}}, 2},
      {"WrongLengthsAreRefused", {{What::refuse}, {What::go, 3}, {What::come, 3}}},
  };
  return all;
}

Status send_all(FramePort& port, std::span<const FrameBytes> frames) {
  const std::vector<Bytes> all(frames.begin(), frames.end());
  for (size_t sent = 0; sent < all.size();) {
    SPL_ASSIGN(const size_t some, port.send(std::span(all).subspan(sent)));
    sent += some;
    if (some == 0 && !wait_for(port, POLLOUT)) return fail(Code::mismatch, "it is never ready to send");
  }
  return {};
}

Result<Frames> received(FramePort& port, size_t count, size_t batch_frames) {
  Frames out;
  std::vector<Bytes> batch(batch_frames);
  while (out.size() < count) {
    SPL_ASSIGN(const size_t came, port.receive(std::span(batch).first(std::min(batch_frames, count - out.size()))));
    if (came == 0 && (port.ended() || !wait_for(port, POLLIN))) break;
    for (const Bytes frame : std::span(batch).first(came)) {
      const auto header = packet::read_ethernet(frame);
      if (header.ok() && header->type == experimental_type) out.emplace_back(frame.begin(), frame.end());
    }
  }
  return out;
}

Status hold(const Scenario& scenario, const PortWay& way) {
  const char* const chosen = std::getenv("SPINLOOM_TEST_SEED");
  const uint64_t first = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  for (uint64_t seed = first; seed < first + (chosen == nullptr ? way.seeds : 1); ++seed) {
    const Status held = hold_seed(scenario, way, seed);
    if (!held.ok()) {
      return fail(held.error().code, held.error().message, "; replay: SPINLOOM_TEST_SEED=", seed,
                  " --gtest_filter='Ports/*/", scenario.name, "_", way.name, "'");
    }
  }
  return {};
}

}  // namespace spinloom::port::test
