// Fuzz target: a member of the job that seals any envelope it likes: packets, loans of memory that is not there, returns
// of loans that were never made, numbers out of turn, stops, goodbyes. The node must go on serving the other ranks, and
// write bytes only where entries allow it.
#include <cstring>
#include <memory>

#include "layout/fuzz.hpp"
#include "live/fabric_transport.hpp"
#include "live/live_testbed.hpp"
#include "live/local_fabric.hpp"
#include "live/node.hpp"
#include "portals/interface.hpp"
#include "wire/packet_format.hpp"
#include "wire/test_support.hpp"

namespace spinloom::live {
namespace {

constexpr uint64_t entry_bytes = 4096;
constexpr uint64_t guard_bytes = 256;
constexpr uint8_t guard = 0x5a;
constexpr wire::SipKey job_key{5, 6};

// One step of the input: what it is, and how long its body is.
struct FabricStep {
  enum class Kind : uint8_t { seal, raw, poll, put, get, strike, count };
  uint8_t kind = 0;
  uint8_t envelope = 0;
  uint8_t flags = 0;
  int8_t ahead = 0;  // of the number that is expected
  uint8_t received = 0;
  uint16_t body = 0;  // so many bytes follow
};

class FabricVictim {
 public:
  FabricVictim() : memory_(entry_bytes + 2 * guard_bytes, guard), source_(60'000, 3), back_(entry_bytes), fabric_(3) {
    auto job = LocalJob::create(3);
    SPL_ASSERT(job.ok(), job.error().message);
    job_ = std::move(*job);
    nic::NicLimits limits;
    limits.payload_bytes = 256;
    limits.transfer_bytes = 1 << 20;
    limits.packet_buffer_bytes = 1 << 14;
    limits.nic_memory_bytes = 1 << 12;
    limits.early_packets = 4;
    limits.at_once_bytes = 100;
    limits.unexpected_headers = 16;
    node_ = std::make_unique<Node>(nic::Rank{0}, 3, limits, job_.segments[0]);
    transport_ = std::make_unique<FabricTransport>(*node_, fabric_.port(0), 0, Secret{job_key.low, job_key.high},
                                                   std::vector<bool>(3, true), [](int) {});
    node_->add(*transport_);
    for (const uint32_t peer : {1u, 2u}) node_->route(nic::Rank{peer}, *transport_);
    host_ = std::make_unique<portals::Interface>(*node_);
    queue_ = host_->eq_alloc(64).value();
    const nic::PortalIndex portal = host_->pt_alloc(queue_).value();
    nic::Entry entry;
    entry.start = memory_.data() + guard_bytes;
    entry.length = entry_bytes;
    entry.ignore_bits = 1;
    SPL_ASSERT(host_->me_append(portal, entry).ok(), "append");
    entry.match_bits = 2;
    SPL_ASSERT(host_->me_append(portal, entry, nic::ListKind::overflow).ok(), "append");
    lent_ = fabric_.port(1)->lend(source_.data(), source_.size()).value();
  }

  void step(const FabricStep& step, std::span<const uint8_t> body) {
    switch (static_cast<FabricStep::Kind>(step.kind % static_cast<uint8_t>(FabricStep::Kind::count))) {
      case FabricStep::Kind::seal: seal(step, body); break;
      case FabricStep::Kind::raw: fabric_.inject(0, {body.begin(), body.end()}); break;
      case FabricStep::Kind::poll: node_->poll(); break;
      case FabricStep::Kind::put: put(1 + step.body % source_.size()); break;
      case FabricStep::Kind::get: get(step.body % entry_bytes); break;
      default: fabric_.strike(1);
    }
    node_->poll();
    while (host_->eq_get(queue_)) {
    }
  }

  void check() {
    for (int i = 0; i < 20; ++i) node_->drive();
    for (uint64_t i = 0; i < guard_bytes; ++i) {
      SPL_ASSERT(memory_[i] == guard && memory_[memory_.size() - 1 - i] == guard, "a byte outside of the entry");
    }
    // Rank 2 must still be served.
    const uint64_t before = node_->engine().state().dropped_messages;
    nic::Packet packet;
    packet.source = nic::Rank{2};
    packet.fields.portal_index = 999;
    packet.message = 77;
    std::vector<uint8_t> body;
    wire::encode(packet, body);
    wire::EnvelopeHeader header;
    header.kind = wire::EnvelopeKind::packet;
    header.source = nic::Rank{2};
    fabric_.inject(0, envelope(header, body));
    for (int i = 0; i < 100 && node_->engine().state().dropped_messages == before; ++i) node_->drive();
    SPL_ASSERT(node_->engine().state().dropped_messages > before, "the other peer is not heard any more");
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
  void put(uint64_t length) {
    nic::Put arguments;
    arguments.local = source_.data();
    arguments.length = length;
    arguments.target = nic::Rank{1};
    arguments.queue = queue_;
    (void)host_->put(arguments);
  }
  void get(uint64_t length) {
    portals::GetArguments arguments;
    arguments.reply.local = back_.data();
    arguments.reply.queue = queue_;
    arguments.length = length;
    arguments.target = nic::Rank{1};
    (void)host_->get(arguments);
  }

  std::vector<uint8_t> memory_, source_, back_;
  LocalFabric fabric_;
  LocalJob job_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<FabricTransport> transport_;
  std::unique_ptr<portals::Interface> host_;
  nic::QueueId queue_;
  FabricPlace lent_;
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

namespace spinloom::layout::fuzz {
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
      if (step.envelope == 1) wire::append(wire::Loan{random.below(4), 1 + random.below(50'000), 1, 4096}, body);
      if (step.envelope == 2) wire::append(random.below(4), body);
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

}  // namespace spinloom::layout::fuzz
