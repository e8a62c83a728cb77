// Fuzz target: a member of the job that seals any envelope it likes: packets, loans of memory that is not there,
// returns of loans that were never made, numbers out of turn, stops, goodbyes. The node must go on serving the other
// ranks, and write bytes only where entries allow it.
#include <cstring>
#include <memory>

#include "base/testing/fuzz.hpp"
#include "live/fabric/fabric_transport.hpp"
#include "live/fabric/testing/local_fabric.hpp"
#include "live/testing/fuzz_host.hpp"
#include "nic/wire/packet_format.hpp"
#include "nic/wire/testing/random_packet.hpp"

namespace spinloom::live {
namespace {

constexpr wire::SipKey job_key{5, 6};

// One step of the input: what it is, and how long its body is.
struct FabricStep {
  enum class Kind : uint8_t { seal, raw, poll, put, get, strike, count };
  uint8_t kind = 0;
  uint8_t envelope = 0;
  uint8_t flags = 0;
  int8_t ahead = 0;  // 16 times the distance from the number that is expected; 0 unless a multiple of 16
  uint8_t received = 0;
  uint16_t body = 0;  // number of bytes that follow
};

class FabricVictim {
 public:
  FabricVictim() : fabric_(3) {
    transport_ = std::make_unique<FabricTransport>(rank_.node(), fabric_.port(0), 0, Secret{job_key.low, job_key.high},
                                                   std::vector<bool>(3, true), [](int) {});
    rank_.open(*transport_);
    lent_ = fabric_.port(1)->lend(rank_.source().data(), rank_.source().size()).value();
  }

  void step(const FabricStep& step, std::span<const uint8_t> body) {
    switch (static_cast<FabricStep::Kind>(step.kind % static_cast<uint8_t>(FabricStep::Kind::count))) {
      case FabricStep::Kind::seal: seal(step, body); break;
      case FabricStep::Kind::raw: fabric_.inject(0, {body.begin(), body.end()}); break;
      case FabricStep::Kind::poll: rank_.node().poll(); break;
      case FabricStep::Kind::put: rank_.put(1 + step.body % rank_.source().size()); break;
      case FabricStep::Kind::get: rank_.get(step.body % FuzzHost::entry_bytes); break;
      default: fabric_.strike(1);
    }
    rank_.node().poll();
    rank_.drain();
  }

  void check() {
    rank_.check([this] {
      nic::Packet packet;
      packet.source = nic::Rank{2};
      packet.fields.portal_index = FuzzHost::no_portal;
      packet.message = 77;
      std::vector<uint8_t> body;
      wire::encode(packet, body);
      wire::EnvelopeHeader header;
      header.kind = wire::EnvelopeKind::packet;
      header.source = nic::Rank{2};
      fabric_.inject(0, envelope(header, body));
    });
  }

 private:
  static std::vector<uint8_t> envelope(const wire::EnvelopeHeader& header, std::span<const uint8_t> body) {
    std::vector<uint8_t> bytes;
    std::ignore = wire::begin_envelope(header, bytes);
    bytes.insert(bytes.end(), body.begin(), body.end());
    wire::seal_envelope(job_key, 0, bytes);
    return bytes;
  }
  void seal(const FabricStep& step, std::span<const uint8_t> body) {
    wire::EnvelopeHeader header;
    header.kind = static_cast<wire::EnvelopeKind>(step.envelope % 4);
    header.flags = step.flags % 64 == 0 ? step.flags : step.flags % 4;  // a goodbye ends the story
    header.source = nic::Rank{1};
    header.sequence = next_ + static_cast<uint64_t>(step.ahead % 16 == 0 ? step.ahead / 16 : 0);
    header.received = step.received;
    std::vector<uint8_t> whole(body.begin(), body.end());
    if (header.kind == wire::EnvelopeKind::loan && whole.size() >= wire::loan_bytes && step.flags % 3 != 0) {
      std::memcpy(whole.data() + 16, &lent_, sizeof lent_);  // memory that is there
    }
    if (header.sequence == next_) ++next_;
    fabric_.inject(0, envelope(header, whole));
  }

  FuzzHost rank_;
  LocalFabric fabric_;
  std::unique_ptr<FabricTransport> transport_;
  FabricRegion lent_;
  uint64_t next_ = 0;
};

}  // namespace
}  // namespace spinloom::live

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spinloom::live::FabricStep;
  spinloom::live::FabricVictim victim;
  for (size_t at = 0; at + sizeof(FabricStep) <= size;) {
    FabricStep step;
    std::memcpy(&step, data + at, sizeof step);
    at += sizeof step;
    const size_t body = std::min<size_t>(step.body, size - at);
    victim.step(step, {data + at, body});
    at += body;
  }
  victim.check();
  return 0;
}

namespace spinloom::fuzz {
namespace {

void append_step(Input& input, live::FabricStep step, const std::vector<uint8_t>& body) {
  step.body = static_cast<uint16_t>(body.size());
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&step);
  input.insert(input.end(), bytes, bytes + sizeof step);
  input.insert(input.end(), body.begin(), body.end());
}

}  // namespace

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  const std::vector<uint8_t> payload(600, 7);
  for (int i = 0; i < 200; ++i) {
    Input input;
    for (uint64_t steps = 3 + random.below(12); steps > 0; --steps) {
      live::FabricStep step;
      step.kind = random.chance(3, 4) ? 0 : static_cast<uint8_t>(random.below(6));
      step.envelope = static_cast<uint8_t>(random.below(4));
      step.flags = static_cast<uint8_t>(random.below(4));
      std::vector<uint8_t> body;
      if (step.envelope == 1) wire::append_loan(wire::Loan{random.below(4), 1 + random.below(50'000), 1, 4096}, body);
      if (step.envelope == 2) wire::append_loan_id(random.below(4), body);
      if (step.envelope <= 1) {
        nic::Packet packet = wire::test::random_packet(random, payload);
        packet.source = nic::Rank{1};
        packet.target = nic::Rank{0};
        if (step.envelope == 1) {
          packet.message_length = std::max<uint64_t>(packet.message_length, 60'000);
          packet.offset = packet.payload.length = packet.missing = 0;
        }
        wire::encode(packet, body);
      }
      append_step(input, step, body);
    }
    out.push_back(std::move(input));
  }
  return out;
}

void mutate(Random& random, Input& input) {
  constexpr uint64_t edges[] = {0, 1, UINT64_MAX, uint64_t{1} << 63, 255, 256, 4096, uint64_t{1} << 40};
  if (input.size() < 9) return;
  const size_t at = random.below(input.size() - 8);
  std::memcpy(input.data() + at, &edges[random.below(std::size(edges))], 1 + random.below(8));
}

}  // namespace spinloom::fuzz
