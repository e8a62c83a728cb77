#include "portals/testbed/scenario_support.hpp"

#include <cstring>
#include <sstream>

namespace spinloom::testbed {
Status GuardedBuffer::check(const std::vector<uint8_t>& expected, const std::string& what) const {
  SPL_ASSERT(expected.size() == size(), what, ": ", expected.size(), " expected bytes for ", size());
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const bool is_guard = i < guard_bytes || i >= guard_bytes + expected.size();
    const uint8_t wanted = is_guard ? fill : expected[i - guard_bytes];
    if (bytes_[i] != wanted) {
      return fail(Code::mismatch, what, ": byte ", static_cast<int64_t>(i) - static_cast<int64_t>(guard_bytes), " of ",
                  expected.size(), is_guard ? " (guard zone)" : "", " is ", int{bytes_[i]}, ", not ", int{wanted});
    }
  }
  return {};
}

Status expect(bool condition, const std::string& what) {
  return condition ? Status{} : Status{fail(Code::mismatch, what)};
}

std::string stream_name(uint32_t rank, uint64_t message) { return text("rank ", rank, " message ", message); }

std::vector<uint8_t> random_bytes(uint64_t seed, const std::string& stream, uint64_t length) {
  Random random(seed, stream);
  std::vector<uint8_t> bytes(length);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

void Trace::add(uint32_t rank, const nic::Event& event) {
  std::ostringstream key;
  std::ostringstream line;
  line << name_of(event.kind);
  switch (event.kind) {
    case nic::EventKind::send: key << "rank " << rank << " sends " << event.user_ptr; break;
    case nic::EventKind::ack:
      line << (event.in_overflow ? " overflow" : "");
      key << "rank " << rank << " sends " << event.user_ptr;
      break;
    case nic::EventKind::reply:
      line << (event.in_overflow ? " overflow" : "");
      key << "rank " << rank << " asks for " << event.user_ptr;
      break;
    case nic::EventKind::get:
    case nic::EventKind::get_overflow:
      key << "rank " << rank << " gives " << event.match_bits << " to " << event.initiator;
      line << " rlength " << event.requested_bytes << " dropped " << event.dropped_bytes << " user " << event.user_ptr;
      break;
    case nic::EventKind::put:
    case nic::EventKind::put_overflow:
    case nic::EventKind::dma:
    case nic::EventKind::atomic:
    case nic::EventKind::atomic_overflow:
    case nic::EventKind::fetch_atomic:
    case nic::EventKind::fetch_atomic_overflow:
      key << "rank " << rank << " receives " << event.hdr_data << " from " << event.initiator;
      line << " bits " << event.match_bits << " rlength " << event.requested_bytes << " dropped " << event.dropped_bytes
           << " user " << event.user_ptr << (event.in_overflow ? " overflow" : "");
      break;
    default: key << "rank " << rank << " entry " << event.user_ptr; break;
  }
  line << " mlength " << event.manipulated_bytes << " fail " << static_cast<int>(event.fail) << "; ";
  lines_[key.str()] += line.str();
}

std::string Trace::text() const {
  std::string lines;
  for (const auto& [key, line] : lines_) lines += key + ": " + line + "\n";
  return lines;
}

Result<Host> Host::make(Testbed& bed, uint32_t rank) {
  Host host;
  host.interface = &bed.rank(rank);
  host.rank = rank;
  SPL_ASSIGN(host.arrivals, host.interface->eq_alloc(256));
  SPL_ASSIGN(host.departures, host.interface->eq_alloc(256));
  SPL_ASSIGN(host.portal, host.interface->pt_alloc(host.arrivals));
  return host;
}

nic::Entry Host::entry(uint8_t* start, uint64_t length, uint64_t match_bits) const {
  nic::Entry entry;
  entry.start = start;
  entry.length = length;
  entry.match_bits = match_bits;
  entry.user_ptr = match_bits;
  return entry;
}

portals::PutArguments Host::put(const std::vector<uint8_t>& bytes, const Host& target, uint64_t match_bits) const {
  portals::PutArguments put;
  put.local = bytes.data();
  put.length = bytes.size();
  put.target = nic::Rank{target.rank};
  put.portal = target.portal;
  put.match_bits = match_bits;
  put.hdr_data = match_bits;
  put.user_ptr = match_bits;
  put.queue = departures;
  put.ack_request = nic::AckRequest::ack;
  return put;
}

Result<nic::ContextId> Host::context(Testbed& bed, const char* handlers, uint32_t block, uint32_t stride,
                                     bool is_blocked) const {
  SPL_ASSIGN(const TestHandlers scenario_handlers, bed.handlers(handlers));
  const uint32_t words[2] = {block, stride};
  std::vector<uint8_t> constants(sizeof words);
  std::memcpy(constants.data(), words, sizeof words);
  nic::Context context;
  context.image = scenario_handlers.image;
  context.payload_entry = scenario_handlers.payload_entry;
  context.completion_entry = scenario_handlers.completion_entry;
  context.constants.length = constants.size();
  SPL_ASSIGN(context.constants.offset, interface->memory_alloc(constants.size()));
  SPL_TRY(interface->memory_write(context.constants.offset, constants));
  if (is_blocked) context.blocked_round_robin = nic::BlockedRoundRobin{2, 4};
  return interface->context_create(context);
}

Result<std::vector<nic::Event>> Host::wait(nic::QueueId queue, size_t count, Trace& trace) const {
  std::vector<nic::Event> events;
  while (events.size() < count) {
    SPL_ASSIGN(const nic::Event event, interface->eq_wait(queue));
    trace.add(rank, event);
    events.push_back(event);
  }
  return events;
}

Result<std::vector<Host>> make_hosts(Testbed& bed) {
  std::vector<Host> hosts;
  for (uint32_t rank = 0; rank < bed.ranks(); ++rank) {
    SPL_ASSIGN(const Host host, Host::make(bed, rank));
    hosts.push_back(host);
  }
  return hosts;
}

Status check_quiet(Testbed& bed, std::vector<Host>& hosts) {
  SPL_TRY(bed.settle());
  for (Host& host : hosts) {
    const nic::NicState state = bed.nic(host.rank).state();
    if (state.messages_open > 0 || state.dmas_open > 0 || state.hpus_busy > 0 || state.hers_waiting > 0 ||
        state.packet_buffer_used > 0 || state.early_packets > 0 || state.messages_outgoing > 0 ||
        state.refused_packets > 0 || state.failed_commands > 0) {
      return fail(Code::mismatch, "not everything came back: ", bed.nic(host.rank).describe_waiting());
    }
    for (const nic::QueueId queue : {host.arrivals, host.departures}) {
      if (const auto event = host.interface->eq_get(queue)) {
        return fail(Code::mismatch, "rank ", host.rank, ": an event of kind ", name_of(event->kind),
                    " that nobody expected, hdr_data ", event->hdr_data, ", user_ptr ", event->user_ptr);
      }
    }
  }
  return {};
}

std::vector<uint8_t> scattered(const std::vector<uint8_t>& packed, uint32_t block, uint32_t stride, uint64_t length) {
  std::vector<uint8_t> spread(length, GuardedBuffer::fill);
  for (size_t i = 0; i < packed.size(); ++i) spread.at(i / block * stride + i % block) = packed[i];
  return spread;
}

}  // namespace spinloom::testbed
