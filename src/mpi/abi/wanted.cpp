#include "mpi/abi/wanted.hpp"

#include "mpi/abi/nic_run.hpp"
#include "mpi/abi/patterns.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

constexpr const char* wrong_arguments = "wrong arguments";

bool is_logical(ptl_op_t op) { return op == PTL_LAND || op == PTL_LOR || op == PTL_LXOR; }
bool is_bitwise(ptl_op_t op) { return op == PTL_BAND || op == PTL_BOR || op == PTL_BXOR; }
bool is_integer(ptl_datatype_t type) { return type <= PTL_UINT32_T || type == PTL_INT64_T || type == PTL_UINT64_T; }
bool is_complex(ptl_datatype_t type) {
  return type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX || type == PTL_LONG_DOUBLE_COMPLEX;
}

// What MPI allows for predefined types.
bool is_allowed(ptl_op_t op, ptl_datatype_t type) {
  if (is_logical(op) || is_bitwise(op)) return is_integer(type);
  return !is_complex(type) || op == PTL_SUM || op == PTL_PROD;
}

// Memory that the NIC can use as it is.
bool is_run(const Place& place) { return place.form->known && place.form->contiguous(place.count); }
uint8_t* first_byte(const Place& place) { return static_cast<uint8_t*>(place.buffer) + place.form->true_lb; }

uint64_t bytes_of(const Place& place) { return static_cast<uint64_t>(place.capacity()); }

}  // namespace

Wanted::Wanted(int operation, Comm comm) : team(layer.offload.of(comm)), comm_(comm) {
  facts.operation = operation;
  if (!team) stays = "its communicator is not on the NIC";
}

bool Wanted::is_root(int root) {
  if (root < 0 || root >= size()) {
    stays = wrong_arguments;
    return false;
  }
  facts.root = static_cast<uint32_t>(root);
  return root == rank();
}

bool Wanted::set(Place& place, const void* buffer, int64_t count, Datatype type) {
  if (count == 0) type = handles().byte;  // it may name any type, or none
  if (count < 0 || type == handles().type_null) {
    stays = wrong_arguments;
    return false;
  }
  place = layer.place_of(buffer, count, type, comm_);
  if (place.capacity() == INT64_MAX) stays = "more bytes than a number holds";
  return true;
}

const void* Wanted::block(const void* buffer, int64_t count, Datatype type, int i) {
  if (count <= 0 || type == handles().type_null) return buffer;
  return static_cast<const char*>(buffer) + i * count * extent_of(type);
}

void Wanted::set_bytes(int64_t count, Datatype type) {
  if (count == 0) return;
  if (count < 0 || type == handles().type_null) {
    stays = wrong_arguments;
    return;
  }
  facts.bytes = static_cast<uint64_t>(Place::capacity_of(*layer.types.form(type), count));
}

void Wanted::set_arithmetic(Op op, Datatype type) {
  if (stays != nullptr) return;
  const auto operation = std::ranges::find(operations(), op, &Arithmetic<Op, ptl_op_t>::handle);
  const auto number = std::ranges::find(numbers(), type, &Arithmetic<Datatype, ptl_datatype_t>::handle);
  if (operation == operations().end()) {
    stays = "an operation that the NIC does not have";
  } else if (number == numbers().end() || !is_allowed(operation->code, number->code)) {
    stays = "a type that the NIC does not reduce";
  } else {
    facts.op = operation->code;
    facts.type = number->code;
  }
}

namespace {

std::shared_ptr<NicRun> short_run(const Wanted& wanted) {
  const NicSchedule::Room room{wanted.has_send ? bytes_of(wanted.send) : 0,
                               wanted.has_receive ? bytes_of(wanted.receive) : 0};
  const auto schedule = wanted.team->short_one(wanted.facts, room);
  auto made = std::make_shared<NicRun>(wanted.team, schedule);
  if (wanted.has_send) made->pack(wanted.send, schedule->send());
  if (wanted.fills_receive) made->pack(wanted.receive, schedule->receive());
  if (wanted.has_receive && !wanted.keeps_receive) made->unpack(wanted.receive, schedule->receive());
  return made;
}

// In the program's memory where that is one run at either side.
std::shared_ptr<NicRun> long_run(const Wanted& wanted, Lasts lasts) {
  NicCall call;
  call.call.operation = wanted.facts.operation;
  call.call.root = wanted.facts.root;
  call.call.bytes = wanted.facts.bytes;
  call.call.op = wanted.facts.op;
  call.call.type = wanted.facts.type;
  const bool receives_there = wanted.has_receive && is_run(wanted.receive);
  const bool in_place = wanted.in_place && receives_there;
  const bool sends_there = wanted.has_send && is_run(wanted.send) && !wanted.copies_send;
  NicSchedule::Room room;
  if (receives_there) {
    call.call.receive = first_byte(wanted.receive);
  } else if (wanted.has_receive) {
    room.receive = bytes_of(wanted.receive);
  }
  if (sends_there && !in_place) call.call.send = first_byte(wanted.send);
  if (wanted.has_send && !sends_there && !in_place) room.send = bytes_of(wanted.send);
  const auto schedule = wanted.team->make(std::move(call), lasts == Lasts::persistent ? SPL_CACHED : SPL_ONCE, room);
  auto made = std::make_shared<NicRun>(wanted.team, schedule);
  if (room.send != 0) made->pack(wanted.send, schedule->send());
  if (room.receive != 0 && wanted.fills_receive) made->pack(wanted.receive, schedule->receive());
  if (room.receive != 0 && !wanted.keeps_receive) made->unpack(wanted.receive, schedule->receive());
  return made;
}

}  // namespace

std::optional<int> carry(const char* call, Wanted& wanted, Comm comm, Lasts lasts, Request* request) {
  layer.offload.count(call, wanted.stays, wanted.facts.bytes);
  if (wanted.stays != nullptr) return std::nullopt;
  if (lasts == Lasts::persistent) {
    const int code = persist(long_run(wanted, lasts), comm, request);
    return code == success ? code : raise(comm, code);
  }
  const bool is_short = wanted.facts.bytes <= NicTeam::short_bytes / wanted.team->size();
  const int code = start(is_short ? short_run(wanted) : long_run(wanted, lasts), request);
  return code == success ? code : raise(comm, code);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
