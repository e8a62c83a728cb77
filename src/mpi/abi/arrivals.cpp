// The end of receives: records are replaced by the messages that they announce, and claims are kept and given out.
#include <algorithm>
#include <cstring>

#include "mpi/abi/bounce_buffers.hpp"
#include "mpi/abi/gpu_aware.hpp"
#include "mpi/abi/too_long.hpp"
#include "mpi/device/device_moves.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
int query_nothing(void*, Status* status) {
  *status = {};
  status->source = undefined;
  status->tag = undefined;
  return success;
}
int free_nothing(void*) { return success; }
int query_offer(void* serial, Status* status) {
  query_nothing(nullptr, status);
  const bool cancelled = layer.cancelled_offers.has(reinterpret_cast<uint64_t>(serial));
  real.Status_set_cancelled(status, cancelled ? 1 : 0);
  return success;
}
int free_offer(void* serial) {
  layer.cancelled_offers.forget(reinterpret_cast<uint64_t>(serial));
  return success;
}
int cancel_nothing(void*, int) { return success; }

bool Layer::make_own_comm() {
  // A split has none of the attributes that the program gives to MPI_COMM_SELF.
  if (!has_own_comm_) has_own_comm_ = real.Comm_split(handles().comm_self, 0, 0, &own_comm_) == success;
  return has_own_comm_;
}

bool Layer::split_own_comm(Comm* made) {
  const Lock lock;
  return make_own_comm() && real.Comm_split(own_comm_, 0, 0, made) == success;
}

// Has the MPI pack or unpack elements that the layer cannot describe. Debian's MPICH cannot pack from absolute
// addresses, and ints do not count all bytes: such elements go in a message to ourselves.
int Layer::mpi_moves(const Place& place, int64_t elements, uint8_t* packed, int64_t bytes, bool packs) {
  if (place.buffer != nullptr && bytes <= INT32_MAX) {
    int position = 0;
    const auto room = static_cast<int>(bytes);
    const auto count = static_cast<int>(elements);
    return packs ? real.Pack(place.buffer, count, place.type, packed, room, &position, place.comm)
                 : real.Unpack(packed, room, &position, place.buffer, count, place.type, place.comm);
  }
  const Lock lock;
  if (!make_own_comm()) return error_other;
  constexpr int tag = 1;
  const auto move = [&]<class N>(N) {
    const auto count = static_cast<N>(elements);
    const auto room = static_cast<N>(bytes);
    const Datatype raw = handles().packed;
    return packs ? real.counted<N>().Sendrecv(place.buffer, count, place.type, 0, tag, packed, room, raw, 0, tag,
                                              own_comm_, status_ignore)
                 : real.counted<N>().Sendrecv(packed, room, raw, 0, tag, place.buffer, count, place.type, 0, tag,
                                              own_comm_, status_ignore);
  };
  if (bytes <= INT32_MAX) return move(int{});
  return real.large.Sendrecv == nullptr ? error_other : move(Count{});
}

bool Layer::copy(const Place& place, std::vector<uint8_t>& bytes) {
  const int64_t length = place.capacity();
  bytes.resize(static_cast<size_t>(length));
  if (length == 0) return true;
  if (!place.form->is_known) return mpi_moves(place, place.count, bytes.data(), length, true) == success;
  Message(*place.form, place.count, place.buffer).pack({0, length}, bytes.data());
  return true;
}

// Writes the first `length` packed bytes at a place to `to`. False: they cannot be read.
bool Layer::peek(const Place& place, int64_t length, uint8_t* to) {
  const Form& form = *place.form;
  if (const auto device = device_of(place)) {
    return DeviceMoves::of_process().read(device->ordinal, device->first, to, length).ok();
  }
  if (form.is_known) {
    Message(form, place.count, place.buffer).pack({0, length}, to);
    return true;
  }
  if (form.size <= 0) return false;
  const int64_t elements = (length + form.size - 1) / form.size;
  std::vector<uint8_t> packed(static_cast<size_t>(elements * form.size));
  if (mpi_moves(place, elements, packed.data(), elements * form.size, true) != success) return false;
  std::memcpy(to, packed.data(), static_cast<size_t>(length));
  return true;
}

// Puts the first packed bytes of a message in place.
int Layer::put_bytes(const uint8_t* bytes, int64_t length, const Place& place) {
  const Form& form = *place.form;
  if (length == 0) return success;
  if (const auto device = device_of(place)) {
    const spinloom::Status put = DeviceMoves::of_process().write(device->ordinal, bytes, device->first, length);
    return put.ok() ? success : raise(place.comm, code_of(put.error()));
  }
  if (form.is_known) {
    Message(form, place.count, place.buffer).unpack({0, length}, bytes);
    return success;
  }
  // The MPI unpacks whole elements only: the last one keeps what the message does not cover.
  const int64_t elements = (length + form.size - 1) / form.size;
  const int64_t room = elements * form.size;
  std::vector<uint8_t> packed(static_cast<size_t>(room));
  int code = mpi_moves(place, elements, packed.data(), room, true);
  if (code == success) {
    std::memcpy(packed.data(), bytes, static_cast<size_t>(length));
    code = mpi_moves(place, elements, packed.data(), room, false);
  }
  return code == success ? code : raise(place.comm, code);
}

namespace {

// Lands a record's message in memory of a device. The bytes come to pinned memory first, unless they come from a peer's
// device.
int land_on_device(const DevicePlace& device, const Record& record, Comm comm, void (*idle)(), DeviceEnd* end) {
  const auto bytes = static_cast<int64_t>(record.bytes);
  const FormPointer bytes_form = basic_form(1, 1);
  DeviceMoves& moves = DeviceMoves::of_process();
  const auto room = moves.room(device.ordinal, bytes);
  if (!room) {
    layer.pipeline.drop(record, idle);
    return raise(comm, code_of(room.error()));
  }
  const spinloom::Status landed = layer.pipeline.land(record, {*bytes_form, bytes, room->data()}, idle, end);
  if (!landed.ok()) return raise(comm, code_of(landed.error()));
  if (end != nullptr && end->is_in_place()) return success;
  const spinloom::Status put = moves.write(device.ordinal, room->data(), device.first, bytes);
  return put.ok() ? success : raise(comm, code_of(put.error()));
}

// Raises the error of a record's message that is too long. The MPI needs the whole message to cut it; it is dropped
// where it is very long, for a device, or of a collective call, which has no receive of its own that the MPI could
// repeat.
int land_too_long(const Record& record, const Place& place, Status* status, void (*idle)()) {
  const auto bytes = static_cast<int64_t>(record.bytes);
  std::unique_ptr<uint8_t[]> bytes_of_message;
  if (place.call[0] == 0 && bytes <= too_long_max && !device_of(place)) {
    bytes_of_message.reset(new (std::nothrow) uint8_t[record.bytes]);
  }
  if (bytes_of_message == nullptr) {
    layer.pipeline.drop(record, idle);
    return too_long(nullptr, bytes, place, status);
  }
  const FormPointer bytes_form = basic_form(1, 1);
  const spinloom::Status landed = layer.pipeline.land(record, {*bytes_form, bytes, bytes_of_message.get()}, idle);
  return landed.ok() ? too_long(bytes_of_message.get(), bytes, place, status)
                     : raise(place.comm, code_of(landed.error()));
}

}  // namespace

int Layer::land(const Record& record, const Place& place, Status* status) {
  const auto bytes = static_cast<int64_t>(record.bytes);
  constexpr auto idle = [] { layer.take_returned(); };
  if (bytes > place.capacity()) return land_too_long(record, place, status, idle);
  const std::shared_ptr<DeviceEnd> end = DeviceEnds::of_process().find(place.buffer);
  if (const auto device = device_of(place)) {
    if (const int code = land_on_device(*device, record, place.comm, idle, end.get()); code != success) return code;
  } else if (place.form->is_known) {
    const Message into(*place.form, place.count, place.buffer);
    const spinloom::Status landed = pipeline.land(record, into, idle, end.get());
    if (!landed.ok()) return raise(place.comm, code_of(landed.error()));
  } else {
    std::vector<uint8_t> packed(record.bytes);
    const FormPointer bytes_form = basic_form(1, 1);
    const spinloom::Status landed = pipeline.land(record, {*bytes_form, bytes, packed.data()}, idle);
    if (!landed.ok()) return raise(place.comm, code_of(landed.error()));
    if (const int code = put_bytes(packed.data(), bytes, place); code != success) return code;
  }
  real.Status_set_elements_x(status, handles().byte, bytes);
  return success;
}

std::optional<Record> Layer::record_in(const Place& place, const Status& status) {
  const int64_t length = bytes_of(status, real);
  if (!Record::may_be(length) || place.capacity() < length) return std::nullopt;
  uint8_t head[Record::most + 1];
  if (!peek(place, length, head)) return std::nullopt;
  return pipeline.read(head, length);
}

int Layer::deliver_short(const Place& place, Status* status) {
  const auto record = record_in(place, *status);
  return record ? land(*record, place, status) : success;
}

bool Layer::fits(const TrackedRequest& tracked, const Status& status) {
  const int64_t room = tracked.place.capacity();
  if (tracked.claim) return bytes_of(tracked.claim->status, real) <= room;
  const auto record = record_in(tracked.place, status);
  return !record || static_cast<int64_t>(record->bytes) <= room;
}

int Layer::deliver_claim(const Claim& claim, const Place& place, Status* status) {
  give_status(claim.status, status);
  if (claim.record) return land(*claim.record, place, status);
  if (claim.length > place.capacity()) return too_long(claim.bytes, claim.length, place, status);
  return put_bytes(claim.bytes, claim.length, place);
}

void Layer::keep_type(TrackedRequest& tracked) const {
  tracked.kept_type.is_held = real.Type_dup(tracked.place.type, &tracked.kept_type.type) == success;
  if (tracked.kept_type.is_held) tracked.place.type = tracked.kept_type.type;
}

int Layer::finish(Request handle, TrackedRequest* tracked, Status* status, int code) {
  int result = code;
  if (code == success && tracked->is_receive && tracked->place.form) {
    int cancelled = 0;
    if (tracked->is_cancelling) real.Test_cancelled(status, &cancelled);
    if (tracked->landed_bytes >= 0) {
      if (tracked->claim) give_status(tracked->claim->status, status);
      real.Status_set_elements_x(status, handles().byte, tracked->landed_bytes);
    } else if (tracked->claim) {
      result = deliver_claim(*tracked->claim, tracked->place, status);
    } else if (cancelled == 0) {
      result = deliver(tracked->place, status);
    }
  }
  const Lock lock;
  if (!tracked->is_persistent) {
    release(handle, tracked);
    return result;
  }
  tracked->is_active = false;
  tracked->is_cancelling = false;
  tracked->landed_bytes = -1;
  tracked->was_looked_at = false;
  tracked->is_substituted = false;
  tracked->claim.reset();
  put_back(handle, tracked);
  return result;
}

namespace {

bool matches(const Claim& claim, int source, int tag, Comm comm) {
  return claim.comm == comm && (source == any_source || source == claim.status.source) &&
         (tag == any_tag || tag == claim.status.tag);
}

}  // namespace

Claim* Layer::find_claim(int source, int tag, Comm comm) {
  for (const ClaimPointer& claim : claims) {
    if (matches(*claim, source, tag, comm)) return claim.get();
  }
  return nullptr;
}

ClaimPointer Layer::take_claim(int source, int tag, Comm comm) {
  for (auto at = claims.begin(); at != claims.end(); ++at) {
    if (!matches(**at, source, tag, comm)) continue;
    ClaimPointer taken = std::move(*at);
    claims.erase(at);
    return taken;
  }
  return nullptr;
}

ClaimPointer Layer::claim_message(MessageHandle handle, const Status& status, Comm comm) {
  auto claim = std::make_unique<Claim>();
  claim->comm = comm;
  claim->status = status;
  claim->handle = handle;
  claim->length = bytes_of(status, real);
  if (!Record::may_be(claim->length)) return claim;
  if (real.Mrecv(claim->bytes, static_cast<int>(claim->length), handles().byte, &claim->handle, &claim->status) !=
      success) {
    return claim;
  }
  claim->received = true;
  claim->record = pipeline.read(claim->bytes, claim->length);
  if (claim->record) {
    real.Status_set_elements_x(&claim->status, handles().byte, static_cast<Count>(claim->record->bytes));
  }
  return claim;
}

bool Layer::claim_seen(const Status& seen, Comm comm) {
  for (;;) {
    int flag = 0;
    MessageHandle handle{};
    Status status{};
    if (real.Improbe(seen.source, any_tag, comm, &flag, &handle, &status) != success || flag == 0) return false;
    claims.push_back(claim_message(handle, status, comm));
    if (status.tag == seen.tag) return true;
  }
}

// Gives the program a handle for a claim: that of the MPI, or that of a message of our own where the bytes are here
// already.
int Layer::hand_out(ClaimPointer claim, MessageHandle* handle) {
  if (!claim->received) {
    *handle = claim->handle;
    return success;
  }
  if (!make_own_comm()) return error_other;
  int code = real.Isend(nullptr, 0, handles().byte, 0, 0, own_comm_, &claim->stand_in);
  if (code == success) code = real.Mprobe(0, 0, own_comm_, handle, status_ignore);
  if (code == success) messages.put(key_of(*handle), claim.release());
  return code;
}

int Layer::make_completed_request(Request* request) {
  const int code = real.Grequest_start(&query_nothing, &free_nothing, &cancel_nothing, nullptr, request);
  return code == success ? real.Grequest_complete(*request) : code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
