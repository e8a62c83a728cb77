// Fuzz target: a peer that writes anything into shared memory: cells, records, bulk bytes, sequences, the count of
// what it has released, the marks of who has begun, the doorbell, the place of its heap, the shared copy. The node
// must go on serving the other ranks, and write bytes only where entries allow it.
#include <cstring>
#include <memory>
#include <mutex>

#include "layout/fuzz.hpp"
#include "live/live_testbed.hpp"
#include "live/node.hpp"
#include "live/shm_transport.hpp"
#include "portals/interface.hpp"

namespace spinloom::live {
namespace {

constexpr uint64_t entry_bytes = 4096;
constexpr uint64_t guard_bytes = 256;
constexpr uint8_t guard = 0x5a;

enum class Step : uint8_t {
  cell,
  record,
  released,
  begun,
  bell,
  reads,
  helps,
  share,
  poll,
  put,
  get,
  long_put,
  heap,
  die,
  count
};

struct Script {
  const uint8_t* at;
  const uint8_t* end;

  [[nodiscard]] bool empty() const { return at == end; }
  // Bytes behind the end of the input read as zero.
  template <class T>
  T take() {
    T value{};
    const size_t there = std::min<size_t>(sizeof value, static_cast<size_t>(end - at));
    std::memcpy(static_cast<void*>(&value), at, there);
    at += there;
    return value;
  }
};

// An address for the peer to publish: readable, because the peer lives in this process, or outside all memory.
uint64_t harmless(uint64_t address, const uint8_t* memory) {
  if (address % 4 == 2) return process_heap().place().base + address % guard_bytes;
  return address % 2 == 0 ? reinterpret_cast<uint64_t>(memory) + address % guard_bytes : 16;
}

// Publishes the place of this process's heap, with errors where `script` says so.
void place_heap(SegmentHeader& header, Script& script) {
  const SharedHeap::Place place = process_heap().place();
  const auto spoiled = script.take<uint8_t>();
  header.heap_base = (spoiled & 1) != 0 ? script.take<uint64_t>() : place.base;
  header.heap_inode = (spoiled & 2) != 0 ? script.take<uint64_t>() : place.inode;
  header.heap_file = (spoiled & 4) != 0 ? script.take<int8_t>() : place.file;
  header.heap_bytes = (spoiled & 8) != 0 ? script.take<uint64_t>() : place.bytes;
}

void spoil(peer::SharedCopyMemory& shared, Script& script) {
  const auto next = script.take<uint64_t>();
  shared.next = next % 2 == 0 ? next : next % 64;
  shared.ended = script.take<uint8_t>();
  shared.failed = script.take<uint8_t>() % 2;
  shared.helps = script.take<uint8_t>() % 2;
}

class Victim {
 public:
  Victim() : memory_(entry_bytes + 2 * guard_bytes, guard), source_(60'000, 3), back_(entry_bytes) {
    auto job = LocalJob::create(3);
    SPL_ASSERT(job.ok(), job.error().message);
    SPL_ASSERT(process_heap().open() == 0, process_heap().open());
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
    shm_ = std::make_unique<ShmTransport>(*node_, job_.segments[0], 0, job_.cards,
                                          ShmOptions{CopyMode::automatic, 2000, 8 << 10, 300}, [](int, nic::Rank) {});
    node_->add(*shm_);
    for (const uint32_t peer : {1u, 2u}) node_->route(nic::Rank{peer}, *shm_);
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
    writer_ = ChannelWriter(job_.segments[0].channel_of(1));
  }

  void step(Script& script) {
    SegmentHeader& header = job_.segments[0].header();
    ChannelMemory* const theirs = job_.segments[1].channel_of(0);
    switch (static_cast<Step>(script.take<uint8_t>() % static_cast<uint8_t>(Step::count))) {
      case Step::cell: publish(script.take<Cell>(), {}); break;
      case Step::record: {
        const auto cell = script.take<Cell>();
        publish(cell, script.take<nic::Packet>());
        break;
      }
      case Step::released: theirs->released.store(script.take<uint16_t>()); break;
      case Step::begun: header.begun[script.take<uint8_t>() % 16].fetch_or(script.take<uint64_t>()); break;
      case Step::bell:
        std::memset(static_cast<void*>(&header.doorbell), script.take<uint8_t>(), sizeof(Doorbell));
        break;
      case Step::reads: theirs->reads_peer.store(static_cast<peer::Reach>(script.take<uint8_t>())); break;
      case Step::helps: spoil(job_.segments[0].channel_of(1)->shared_copy, script); break;
      case Step::share: {
        peer::SharedCopyMemory& theirs_shared = theirs->shared_copy;
        theirs_shared.from = harmless(script.take<uint64_t>(), back_.data());
        theirs_shared.to = harmless(script.take<uint8_t>() % 2, back_.data());
        theirs_shared.length = script.take<uint16_t>() % (entry_bytes - guard_bytes);
        theirs_shared.part_bytes = script.take<uint16_t>();
        spoil(theirs_shared, script);
        break;
      }
      case Step::poll: node_->poll(); break;
      case Step::put: put(script.take<uint8_t>(), script.take<uint8_t>()); break;
      case Step::get: get(script.take<uint16_t>() % entry_bytes); break;
      case Step::heap: place_heap(job_.segments[1].header(), script); break;
      case Step::long_put: put(script.take<uint16_t>() % source_.size(), 1); break;
      default: shm_->died(nic::Rank{1});
    }
    while (host_->eq_get(queue_)) {
    }
  }

  void check() {
    for (int i = 0; i < 20; ++i) node_->drive();
    for (uint64_t i = 0; i < guard_bytes; ++i) {
      SPL_ASSERT(memory_[i] == guard && memory_[memory_.size() - 1 - i] == guard, "a byte outside of the entry");
    }
    // Rank 2 must still be served.
    ChannelWriter honest(job_.segments[0].channel_of(2));
    const uint64_t before = node_->engine().state().dropped_messages;
    Cell cell;
    cell.kind = CellKind::small;
    cell.message = 77;
    cell.portal = 999;
    const ChannelWriter::Room room = honest.reserve(0);
    honest.publish(room, cell);
    job_.segments[0].header().begun[0] |= 4;
    for (int i = 0; i < 100 && node_->engine().state().dropped_messages == before; ++i) node_->drive();
    SPL_ASSERT(node_->engine().state().dropped_messages > before, "the other peer is not heard any more");
  }

 private:
  void publish(Cell cell, const nic::Packet& record) {
    const ChannelWriter::Room room = writer_.reserve(sizeof(nic::Packet) + guard_bytes);
    if (room.cell == nullptr) return;
    std::memcpy(room.bulk, &record, sizeof record);
    if (cell.length % 4 != 0) cell.match_bits = room.bulk_offset;  // most records are where their cells say
    if (cell.kind == CellKind::lent) cell.remote_offset = harmless(cell.remote_offset, back_.data());
    writer_.publish(room, cell);
    job_.segments[0].header().begun[0] |= 2;
  }
  void put(uint64_t length, uint8_t ack) {
    nic::Put arguments;
    arguments.local = source_.data();
    arguments.length = length;
    arguments.target = nic::Rank{1};
    arguments.queue = queue_;
    arguments.ack_request = ack % 2 == 0 ? nic::AckRequest::none : nic::AckRequest::ack;
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
  LocalJob job_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<ShmTransport> shm_;
  std::unique_ptr<portals::Interface> host_;
  nic::QueueId queue_;
  ChannelWriter writer_;
};

}  // namespace
}  // namespace spinloom::live

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spinloom::live::Victim victim;
  spinloom::live::Script script{data, data + size};
  while (!script.empty()) victim.step(script);
  victim.check();
  return 0;
}

namespace spinloom::layout::fuzz {
namespace {

template <class T>
void add(Input& input, const T& value) {
  const size_t at = input.size();
  input.resize(at + sizeof value);
  std::memcpy(input.data() + at, static_cast<const void*>(&value), sizeof value);
}

}  // namespace

std::vector<Input> seeds(Random& random) {
  using live::Step;
  std::vector<Input> out;
  for (int i = 0; i < 100; ++i) {
    Input input;
    uint64_t message = 1;
    uint64_t rest = 0, length = 0;
    for (uint64_t steps = 5 + random.below(30); steps > 0; --steps) {
      const auto step = static_cast<Step>(random.chance(1, 2) ? 1 : random.below(static_cast<uint64_t>(Step::count)));
      add(input, step);
      if (step == Step::cell || step == Step::record) {
        live::Cell cell;
        cell.kind = static_cast<live::CellKind>(step == Step::cell ? 1 + random.below(6) : 2 + random.below(2));
        cell.length = static_cast<uint8_t>(random.below(17));
        cell.message = step == Step::cell ? message++ : random.below(4);
        cell.remote_offset = random.below(300);
        add(input, cell);
        if (step == Step::cell) continue;
        nic::Packet packet;
        packet.operation = static_cast<nic::Operation>(random.below(6));
        if (rest == 0) {
          length = rest = random.below(2000);
          ++message;
        }
        packet.message = message;
        packet.message_length = length;
        packet.offset = length - rest;
        rest -= std::min<uint64_t>(rest, cell.remote_offset);
        packet.fields.match_bits = random.below(4);
        packet.fields.ack_request = static_cast<nic::AckRequest>(random.below(4));
        packet.fields.request.requested_bytes = random.below(5000);
        packet.answers = random.below(1 << 20);
        add(input, packet);
      } else {
        add(input, static_cast<uint16_t>(random.below(2000)));
      }
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
