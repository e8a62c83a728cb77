// Messages in a GPU's memory that their receivers take from there, without the host: offered before the call that
// announces them.
#include <algorithm>

#include "mpi/abi/bounced.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Returns the receiver's rank in MPI_COMM_WORLD; below zero if the message cannot be offered to it.
int receiver_of(const Sending& sending, int64_t bytes, int ordinal) {
  const Settings& settings = layer.settings;
  if (!layer.is_on || settings.gpu_by_host || settings.path == Path::pass) return -1;
  if (bytes < std::max(settings.min_bytes, Record::most + 1) || bytes == INT64_MAX) return -1;
  if (ordinal != layer.pipeline.devices().ordinal()) return -1;
  const int to = layer.world_rank(sending.comm, sending.peer);
  if (to < 0 || to == layer.rank) return -1;
  const auto receiver = static_cast<uint32_t>(to);
  return layer.pipeline.can_reach(receiver) && layer.pipeline.devices().maps_ours(receiver) ? to : -1;
}

}  // namespace

void meet_devices(const BounceBuffers& bounce) {
  if (!layer.is_on || layer.settings.gpu_by_host) return;
  const Lock lock;
  layer.types.disable_bypass();
  layer.pipeline.devices().open(bounce.ordinal());
  layer.pipeline.devices().notice();
}

bool may_offer(const Sending& sending, int64_t bytes, int ordinal) {
  const Lock lock;
  return receiver_of(sending, bytes, ordinal) >= 0;
}

bool offer_bounced(const BounceBuffers& bounce, bool waits) {
  DeviceEnd* const end = bounce.sending ? bounce.sent_buffer() : nullptr;
  if (end == nullptr) return false;
  const Sending& sending = *bounce.sending;
  int to = -1;
  {
    const Lock lock;
    const Place place = layer.place_of(end->room(), sending.count, sending.type, sending.comm);
    to = receiver_of(sending, place.capacity(), end->ordinal());
    if (place.form->record_bytes <= 0 || (to >= 0 && !layer.may_offer_to(static_cast<uint32_t>(to)))) to = -1;
  }
  if (to < 0 || !end->await().ok()) return false;
  const Lock lock;
  const Place place = layer.place_of(end->room(), sending.count, sending.type, sending.comm);
  const char* why = "";
  auto pending = layer.pipeline.offer(*end, waits, why);
  if (!pending) {
    layer.count(place, to, Way::pass, why);
    return false;
  }
  layer.count(place, to, Way::device, "the receiver maps this rank's GPU memory");
  pending->receiver = static_cast<uint32_t>(to);
  layer.bounced_sends.push_back({end->room(), sending.count, sending.type, *pending});
  return true;
}

void drop_offer(const BounceBuffers& bounce) {
  const DeviceEnd* const end = bounce.sending ? bounce.sent_buffer() : nullptr;
  if (end == nullptr) return;
  const Lock lock;
  if (const auto pending = layer.take_bounced(end->room(), bounce.sending->count, bounce.sending->type))
    layer.pipeline.abandon(*pending);
}

bool Layer::has_bounced(const void* room) const {
  return std::ranges::any_of(bounced_sends, [room](const BouncedSend& send) { return send.room == room; });
}

// The type is compared, too: the address that stands for an image may happen to be that of another message's room.
std::optional<PendingSend> Layer::take_bounced(const void* room, int64_t count, Datatype type) {
  const auto found = std::ranges::find_if(bounced_sends, [&](const BouncedSend& send) {
    return send.room == room && send.count == count && send.type == type;
  });
  if (found == bounced_sends.end()) return std::nullopt;
  const PendingSend pending = found->pending;
  bounced_sends.erase(found);
  return pending;
}

// Fills the bounce buffer of an offered message after all, because the receiver has not come or could not read it.
// False: the bytes cannot be had. True for messages in memory of the host.
bool Layer::fill_bounced(const OfferedSend& send) {
  if (!send.pending.slot->offer.is_on_device) return true;
  const std::shared_ptr<DeviceEnd> end = DeviceEnds::of_process().find(send.place.buffer);
  return end != nullptr && end->fill().ok();
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
