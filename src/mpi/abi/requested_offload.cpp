#include "mpi/abi/requested_offload.hpp"

#include <bit>

#include "mpi/abi/nic_run.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

constexpr const char* wrong_arguments = "wrong arguments";

bool is_logical(ptl_op_t op) { return op == PTL_LAND || op == PTL_LOR || op == PTL_LXOR; }
bool is_bitwise(ptl_op_t op) { return op == PTL_BAND || op == PTL_BOR || op == PTL_BXOR; }
bool is_integer(ptl_datatype_t type) { return type <= PTL_UINT32_T || type == PTL_INT64_T || type == PTL_UINT64_T; }
bool is_complex(ptl_datatype_t type) {
  return type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX || type == PTL_LONG_DOUBLE_COMPLEX;
}

// True if MPI allows the operation for this predefined type.
bool is_allowed(ptl_op_t op, ptl_datatype_t type) {
  if (is_logical(op) || is_bitwise(op)) return is_integer(type);
  return !is_complex(type) || op == PTL_SUM || op == PTL_PROD;
}

// True if the NIC can use the memory as it is.
bool is_contiguous(const Place& place) { return place.form->is_known && place.form->is_contiguous(place.count); }
uint8_t* first_byte(const Place& place) { return static_cast<uint8_t*>(place.buffer) + place.form->true_lb; }

uint64_t bytes_of(const Place& place) { return static_cast<uint64_t>(place.capacity()); }

}  // namespace

RequestedOffload::RequestedOffload(int operation, Comm comm) : team(layer.offload.of(comm)), comm_(comm) {
  facts.operation = operation;
  if (!team) why_mpi = "its communicator is not on the NIC";
}

bool RequestedOffload::is_root(int root) {
  if (root < 0 || root >= size()) {
    why_mpi = wrong_arguments;
    return false;
  }
  facts.root = static_cast<uint32_t>(root);
  return root == rank();
}

bool RequestedOffload::set(Place& place, const void* buffer, int64_t count, Datatype type) {
  if (count == 0) type = handles().byte;  // it may name any type, or none
  if (count < 0 || type == handles().type_null) {
    why_mpi = wrong_arguments;
    return false;
  }
  place = layer.place_of(buffer, count, type, comm_);
  if (place.capacity() == INT64_MAX) why_mpi = "more bytes than a number holds";
  return true;
}

const void* RequestedOffload::block(const void* buffer, int64_t count, Datatype type, int i) {
  if (count <= 0 || type == handles().type_null) return buffer;
  return static_cast<const char*>(buffer) + i * count * extent_of(type);
}

void RequestedOffload::set_bytes(int64_t count, Datatype type) {
  if (count == 0) return;
  if (count < 0 || type == handles().type_null) {
    why_mpi = wrong_arguments;
    return;
  }
  facts.bytes = static_cast<uint64_t>(Place::capacity_of(*layer.types.form(type), count));
}

void RequestedOffload::add(std::vector<Place>& blocks, const void* buffer, int64_t count, Datatype type) {
  (void)set(blocks.emplace_back(), buffer, count, type);
}

void RequestedOffload::set_neighbours(Order order) {
  const Team* const team_of_comm = layer.teams.of(comm_);
  int topology = 0;
  if (team_of_comm == nullptr || !team_of_comm->neighbours.is_known || real.Topo_test(comm_, &topology) != success) {
    why_mpi = "no neighbours are known";
    return;
  }
  const auto numbers_of = [](const std::vector<int>& ranks) {
    std::vector<uint32_t> numbers;
    for (const int rank : ranks) numbers.push_back(rank < 0 ? UINT32_MAX : static_cast<uint32_t>(rank));
    return numbers;
  };
  sources = numbers_of(team_of_comm->neighbours.from);
  destinations = numbers_of(team_of_comm->neighbours.to);
  if (order == Order::any) return;
  // All ranks of a grid meet a neighbour twice, or none does; on a graph other ranks cannot know.
  if (topology != cartesian) {
    why_mpi = "whether a rank meets a neighbour of its graph twice is not known to all";
    return;
  }
  std::vector<uint32_t> sorted = sources;
  std::ranges::sort(sorted);
  const auto twice =
      std::ranges::adjacent_find(sorted, [](uint32_t one, uint32_t next) { return one == next && one != UINT32_MAX; });
  if (twice != sorted.end()) why_mpi = "neighbours meet twice on this grid, and MPIs differ in what goes where";
}

void RequestedOffload::set_arithmetic(Op op, Datatype type) {
  if (why_mpi != nullptr) return;
  const auto operation = std::ranges::find(operations(), op, &Arithmetic<Op, ptl_op_t>::handle);
  const auto number = std::ranges::find(numbers(), type, &Arithmetic<Datatype, ptl_datatype_t>::handle);
  if (operation == operations().end()) {
    why_mpi = "an operation that the NIC does not have";
  } else if (number == numbers().end() || !is_allowed(operation->code, number->code)) {
    why_mpi = "a type that the NIC does not reduce";
  } else {
    facts.op = operation->code;
    facts.type = number->code;
  }
}

namespace {

NicCall nic_call(const RequestedOffload& requested) {
  NicCall nic;
  nic.call.operation = requested.facts.operation;
  nic.call.root = requested.facts.root;
  nic.call.bytes = requested.facts.bytes;
  nic.call.op = requested.facts.op;
  nic.call.type = requested.facts.type;
  nic.receive_bytes = requested.bytes_of_ranks;
  return nic;
}

// True if all that is sent and received is one block, the same for all ranks.
bool is_one_block(int operation) {
  return operation == SPL_ALLREDUCE || operation == SPL_REDUCE || operation == SPL_BCAST || operation == SPL_SCAN;
}

// Returns the length of the block in the schedule that calls of nearly as many bytes share: that of the longest of
// them, which is whole elements. A program that adds one number more in each iteration needs no new schedule for each.
uint64_t shared_block(uint64_t bytes) {
  const uint64_t step = bytes <= 512 ? 64 : std::bit_ceil(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

std::shared_ptr<NicRun> short_run(const RequestedOffload& requested) {
  NicTeam::Facts facts = requested.facts;
  uint64_t padding_bytes = 0;  // bytes behind the call's own
  if (is_one_block(facts.operation)) {
    facts.bytes = shared_block(facts.bytes);
    padding_bytes = facts.bytes - requested.facts.bytes;
  }
  const NicSchedule::Room room{requested.has_send ? bytes_of(requested.send) + padding_bytes : 0,
                               requested.has_receive ? bytes_of(requested.receive) + padding_bytes : 0};
  const auto schedule = requested.team->short_schedule(facts, room);
  auto run = std::make_shared<NicRun>(requested.team, schedule);
  if (requested.has_send) {
    run->pack(requested.send, schedule->send());
    run->clear(schedule->send() + bytes_of(requested.send), padding_bytes);
  }
  if (requested.fills_receive) run->pack(requested.receive, schedule->receive());
  if (requested.has_receive && !requested.keeps_receive) run->unpack(requested.receive, schedule->receive());
  return run;
}

// Makes a long call, in the program's memory where that is one run at either side.
std::shared_ptr<NicRun> long_run(const RequestedOffload& requested, Lifetime lifetime) {
  NicCall call = nic_call(requested);
  const bool receives_directly = requested.has_receive && is_contiguous(requested.receive);
  const bool in_place = requested.in_place && receives_directly;
  const bool sends_directly = requested.has_send && is_contiguous(requested.send) && !requested.copies_send;
  NicSchedule::Room room;
  if (receives_directly) {
    call.call.receive = first_byte(requested.receive);
  } else if (requested.has_receive) {
    room.receive = bytes_of(requested.receive);
  }
  if (sends_directly && !in_place) call.call.send = first_byte(requested.send);
  if (requested.has_send && !sends_directly && !in_place) room.send = bytes_of(requested.send);
  const auto schedule =
      requested.team->make(std::move(call), lifetime == Lifetime::persistent ? SPL_CACHED : SPL_ONCE, room);
  auto run = std::make_shared<NicRun>(requested.team, schedule);
  if (room.send != 0) run->pack(requested.send, schedule->send());
  if (room.receive != 0 && requested.fills_receive) run->pack(requested.receive, schedule->receive());
  if (room.receive != 0 && !requested.keeps_receive) run->unpack(requested.receive, schedule->receive());
  return run;
}

// The blocks of one side of a call: in the program's memory, from `base` on, or packed one after the other.
struct BlockList {
  void* base = nullptr;
  uint64_t room = 0;
  std::vector<uint64_t> bytes, offsets;

  BlockList(const std::vector<Place>& blocks, bool is_copied) {
    const auto is_usable = [](const Place& place) { return place.capacity() == 0 || is_contiguous(place); };
    if (is_copied || !std::ranges::all_of(blocks, is_usable)) {
      for (const Place& place : blocks) {
        bytes.push_back(bytes_of(place));
        offsets.push_back(room);
        room += bytes_of(place);
      }
      return;
    }
    uint8_t* first = nullptr;
    for (const Place& place : blocks) {
      if (place.capacity() != 0 && (first == nullptr || first_byte(place) < first)) first = first_byte(place);
    }
    for (const Place& place : blocks) {
      bytes.push_back(bytes_of(place));
      offsets.push_back(place.capacity() == 0 ? 0 : static_cast<uint64_t>(first_byte(place) - first));
    }
    base = first;
  }
};

std::shared_ptr<NicRun> list_run(const RequestedOffload& requested, Lifetime lifetime) {
  const BlockList out(requested.sends, requested.copies_send);
  const BlockList in(requested.receives, false);
  NicCall call = nic_call(requested);
  static uint8_t nothing = 0;  // a null address would mean: in place
  call.call.send = out.base == nullptr ? &nothing : out.base;
  call.call.receive = in.base == nullptr ? &nothing : in.base;
  call.send_bytes = out.bytes;
  call.send_at = out.offsets;
  call.receive_bytes = in.bytes;
  call.receive_at = in.offsets;
  call.source = requested.sources;
  call.destination = requested.destinations;
  call.call.sources = static_cast<uint32_t>(requested.sources.size());
  call.call.destinations = static_cast<uint32_t>(requested.destinations.size());
  const NicSchedule::Room room{out.room, in.room};
  const auto schedule =
      requested.team->make(std::move(call), lifetime == Lifetime::persistent ? SPL_CACHED : SPL_ONCE, room);
  auto run = std::make_shared<NicRun>(requested.team, schedule);
  for (size_t i = 0; out.room != 0 && i < requested.sends.size(); ++i) {
    if (out.bytes[i] != 0) run->pack(requested.sends[i], schedule->send() + out.offsets[i]);
  }
  for (size_t i = 0; in.room != 0 && i < requested.receives.size(); ++i) {
    if (in.bytes[i] != 0) run->unpack(requested.receives[i], schedule->receive() + in.offsets[i]);
  }
  return run;
}

std::shared_ptr<NicRun> run_of(const RequestedOffload& requested, Lifetime lifetime) {
  if (requested.has_lists) return list_run(requested, lifetime);
  const bool is_short = requested.facts.bytes <= NicTeam::short_bytes / requested.team->size();
  if (lifetime == Lifetime::once && is_short && requested.bytes_of_ranks.empty()) return short_run(requested);
  return long_run(requested, lifetime);
}

}  // namespace

std::optional<int> carry(const char* call, RequestedOffload& requested, Lifetime lifetime, Request* request) {
  layer.offload.count(call, requested.why_mpi, requested.facts.bytes);
  if (requested.why_mpi != nullptr) return std::nullopt;
  auto run = run_of(requested, lifetime);
  return lifetime == Lifetime::persistent ? persist(std::move(run), requested.comm(), request)
                                          : start(std::move(run), request);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
