// Fuzz target: a peer that writes anything into shared memory: cells, records, bulk bytes, sequences, the count of
// what it has released, the marks of who has begun, the doorbell, the place of its heap, the shared copy. The node
// must go on serving the other ranks, and write bytes only where entries allow it.
#include <cstring>
#include <memory>
#include <mutex>

#include "base/testing/fuzz.hpp"
#include "live/shm/shm_transport.hpp"
#include "live/testing/fuzz_host.hpp"

namespace spinloom::live {
namespace {

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
  if (address % 4 == 2) return process_heap().location().base + address % FuzzHost::guard_bytes;
  return address % 2 == 0 ? reinterpret_cast<uint64_t>(memory) + address % FuzzHost::guard_bytes : 16;
}

// Publishes the place of this process's heap, with errors where `script` says so.
void place_heap(SegmentHeader& header, Script& script) {
  const SharedHeap::Location place = process_heap().location();
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
  shared.can_help = script.take<uint8_t>() % 2;
}

class Victim {
 public:
  Victim() {
    SPL_ASSERT(process_heap().open() == 0, process_heap().open());
    shm_ = std::make_unique<ShmTransport>(rank_.node(), segment(0), 0, rank_.job().cards,
                                          ShmOptions{CopyMode::automatic, 2000, 8 << 10, 300}, [](int, nic::Rank) {});
    rank_.open(*shm_);
    writer_ = ChannelWriter(segment(0).channel_of(1));
  }

  void step(Script& script) {
    SegmentHeader& header = segment(0).header();
    ChannelMemory* const theirs = segment(1).channel_of(0);
    switch (static_cast<Step>(script.take<uint8_t>() % static_cast<uint8_t>(Step::count))) {
      case Step::cell: publish(script.take<Cell>(), {}); break;
      case Step::record: {
        const auto cell = script.take<Cell>();
        publish(cell, script.take<nic::Packet>());
        break;
      }
      case Step::released: theirs->released.store(script.take<uint16_t>()); break;
      case Step::begun: header.attached_peers[script.take<uint8_t>() % 16].fetch_or(script.take<uint64_t>()); break;
      case Step::bell:
        std::memset(static_cast<void*>(&header.doorbell), script.take<uint8_t>(), sizeof(Doorbell));
        break;
      case Step::reads: theirs->reader_reach.store(static_cast<peer::Reach>(script.take<uint8_t>())); break;
      case Step::helps: spoil(segment(0).channel_of(1)->shared_copy, script); break;
      case Step::share: {
        peer::SharedCopyMemory& theirs_shared = theirs->shared_copy;
        theirs_shared.from = harmless(script.take<uint64_t>(), rank_.back().data());
        theirs_shared.to = harmless(script.take<uint8_t>() % 2, rank_.back().data());
        theirs_shared.length = script.take<uint16_t>() % (FuzzHost::entry_bytes - FuzzHost::guard_bytes);
        theirs_shared.part_bytes = script.take<uint16_t>();
        spoil(theirs_shared, script);
        break;
      }
      case Step::poll: rank_.node().poll(); break;
      case Step::put: {
        const auto length = script.take<uint8_t>();
        rank_.put(length, script.take<uint8_t>() % 2 == 0 ? nic::AckRequest::none : nic::AckRequest::ack);
        break;
      }
      case Step::get: rank_.get(script.take<uint16_t>() % FuzzHost::entry_bytes); break;
      case Step::heap: place_heap(segment(1).header(), script); break;
      case Step::long_put: rank_.put(script.take<uint16_t>() % rank_.source().size(), nic::AckRequest::ack); break;
      default: shm_->process_ended(nic::Rank{1});
    }
    rank_.drain();
  }

  void check() {
    rank_.check([this] {
      ChannelWriter honest(segment(0).channel_of(2));
      Cell cell;
      cell.kind = CellKind::small;
      cell.message = 77;
      cell.portal = FuzzHost::no_portal;
      const ChannelWriter::Room room = honest.reserve(0);
      honest.publish(room, cell);
      segment(0).header().attached_peers[0] |= 4;
    });
  }

 private:
  [[nodiscard]] Segment& segment(uint32_t rank) { return rank_.job().segments[rank]; }
  void publish(Cell cell, const nic::Packet& record) {
    const ChannelWriter::Room room = writer_.reserve(sizeof(nic::Packet) + FuzzHost::guard_bytes);
    if (room.cell == nullptr) return;
    std::memcpy(room.bulk, &record, sizeof record);
    if (cell.length % 4 != 0) cell.match_bits = room.bulk_offset;  // most records are where their cells say
    if (cell.kind == CellKind::lent) cell.remote_offset = harmless(cell.remote_offset, rank_.back().data());
    writer_.publish(room, cell);
    segment(0).header().attached_peers[0] |= 2;
  }

  FuzzHost rank_;
  std::unique_ptr<ShmTransport> shm_;
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

namespace spinloom::fuzz {
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

}  // namespace spinloom::fuzz
