// The suite over all frame ports finds ports that are wrong.
#include "ethernet/port/testing/file_wire.hpp"

namespace spinloom::port::test {
namespace {

enum class Fault : uint8_t {
  flips,
  loses,
  doubles,
  swaps,
  echoes,
  sends_flipped,
  counts_wrong,
  sends_any_length,
  moves
};

// A port of files with one fault.
class FaultyPort final : public FramePort {
 public:
  FaultyPort(FramePort& inner, Fault fault) : inner_(inner), fault_(fault) {}

  Result<size_t> receive(std::span<Bytes> batch) override {
    SPL_ASSIGN(size_t came, inner_.receive(batch));
    kept_.clear();
    for (const Bytes frame : std::span(batch).first(came)) kept_.emplace_back(frame.begin(), frame.end());
    if (came > 0 && fault_ == Fault::flips) kept_.back().back() ^= 1;
    if (came > 0 && fault_ == Fault::doubles && more_.empty()) more_ = {kept_.front()};
    if (came > 0 && fault_ == Fault::loses) kept_.pop_back();
    if (came > 0 && fault_ == Fault::swaps) std::swap(kept_.front(), kept_.back());
    if (kept_.size() < batch.size() && !more_.empty()) {
      kept_.push_back(more_.front());
      more_.clear();
    }
    std::copy(kept_.begin(), kept_.end(), batch.begin());
    return kept_.size();
  }
  Result<size_t> send(std::span<const Bytes> frames) override {
    Frames changed;
    for (const Bytes frame : frames) changed.emplace_back(frame.begin(), frame.end());
    if (fault_ == Fault::sends_flipped && !changed.empty() && !changed[0].empty()) changed[0].back() ^= 1;
    if (fault_ == Fault::moves && !kept_.empty()) kept_[0].back() ^= 1;
    if (!changed.empty() && fault_ == Fault::echoes) more_ = {changed.front()};
    const std::vector<Bytes> all(changed.begin(), changed.end());
    auto sent = inner_.send(all);
    if (!sent.ok() && fault_ == Fault::sends_any_length) return frames.size();
    return sent;
  }
  bool ended() const override { return inner_.ended(); }
  packet::MacAddress mac() const override { return inner_.mac(); }
  size_t mtu() const override { return inner_.mtu(); }
  Counters counters() override {
    Counters counters = inner_.counters();
    if (fault_ == Fault::counts_wrong) counters.sent = 0;
    return counters;
  }
  int descriptor() const override { return inner_.descriptor(); }
  std::string description() const override { return "faulty"; }

 private:
  FramePort& inner_;
  Fault fault_;
  Frames kept_;
  Frames more_;  // comes as soon as there is room
};

class FaultyWire final : public Wire {
 public:
  FaultyWire(std::unique_ptr<Wire> inner, Fault fault) : inner_(std::move(inner)), port_(inner_->port(), fault) {}
  FramePort& port() override { return port_; }
  Status give(std::span<const FrameBytes> frames) override { return inner_->give(frames); }
  Result<Frames> taken(size_t count) override { return inner_->taken(count); }

 private:
  std::unique_ptr<Wire> inner_;
  FaultyPort port_;
};

bool is_found(Fault fault) {
  const auto text_of = [](const std::string& in, const std::string& out) { return "pcap:" + in + "," + out; };
  const PortWay way{"faulty",
                    [=](const Frames& coming) -> Result<std::unique_ptr<Wire>> {
                      SPL_ASSIGN(std::unique_ptr<Wire> wire, file_wire(text_of, coming));
                      return std::unique_ptr<Wire>(std::make_unique<FaultyWire>(std::move(wire), fault));
                    },
                    true};
  for (const Scenario& scenario : scenarios()) {
    if (!hold(scenario, way).ok()) return true;
  }
  return false;
}

TEST(PortWays, FindEachFault) {
  for (const Fault fault : {Fault::flips, Fault::loses, Fault::doubles, Fault::swaps, Fault::echoes,
                            Fault::sends_flipped, Fault::counts_wrong, Fault::sends_any_length, Fault::moves}) {
    EXPECT_TRUE(is_found(fault)) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace spinloom::port::test
