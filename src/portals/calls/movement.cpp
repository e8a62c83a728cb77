#include "portals/calls/movement.hpp"

#include <new>

namespace spinloom::calls {
namespace {

nic::AckRequest ack_of(ptl_ack_req_t request) {
  switch (request) {
    case PTL_ACK_REQ: return nic::AckRequest::ack;
    case PTL_CT_ACK_REQ: return nic::AckRequest::ct_ack;
    case PTL_OC_ACK_REQ: return nic::AckRequest::oc_ack;
    default: return nic::AckRequest::none;
  }
}

// True if the range lies in the descriptor's memory and is no longer than a message may be.
bool is_inside(const Descriptor& md, const NetworkInterface& interface, ptl_size_t offset, ptl_size_t length) {
  const bool is_in_memory = offset <= md.length && length <= md.length - offset;
  return is_in_memory && length <= interface.limits.max_msg_size;
}

// True if an acknowledgement of this kind can be told of; false for a kind that does not exist, too. `request`: not
// PTL_NO_ACK_REQ.
bool can_be_told(const Descriptor& md, ptl_ack_req_t request) {
  if (request > PTL_OC_ACK_REQ || (md.description.options & PTL_MD_UNRELIABLE) != 0) return false;
  return request == PTL_ACK_REQ ? md.queue.exists() : md.counter.exists();
}

// The descriptor's queue and counter. One that has been freed is none: nobody hears what it would be told.
nic::QueueId queue_of(const Descriptor& md, const NetworkInterface& interface) {
  const Queue* const queue = interface.queues.find(md.description.eq_handle);
  return queue != nullptr && queue->id == md.queue ? md.queue : nic::QueueId{};
}
nic::CounterId counter_of(const Descriptor& md, const NetworkInterface& interface) {
  const Counter* const counter = interface.counters.find(md.description.ct_handle);
  return counter != nullptr && counter->id == md.counter ? md.counter : nic::CounterId{};
}

// The address of a range of a descriptor; null if the range is empty, or lies in several elements of a list.
uint8_t* address_of(const Descriptor& md, ptl_size_t offset, ptl_size_t length) {
  if (length == 0) return nullptr;
  const nic::IovecView list = md.shared->list();
  if (!list.exists()) return static_cast<uint8_t*>(md.description.start) + offset;
  const size_t index = nic::element_at(list, offset);
  const uint64_t within = offset - (list.ends[index] - list.elements[index].length);
  return length <= list.elements[index].length - within ? list.elements[index].base + within : nullptr;
}

// Copies the current bytes into a descriptor of the put's own. If some of the bytes are not there, nothing is copied,
// and the NIC will report that. False: there is no memory for the copy.
bool copy_now(Process& process, nic::Put& put, const nic::DescriptorRef& descriptor) {
  nic::HostMemory* const memory = put.sparse ? process.portals().port().memory() : nullptr;
  const bool is_there =
      memory == nullptr || (put.local != nullptr ? memory->reaches(put.local, put.length, nic::Access::read)
                                                 : memory->reaches(descriptor->list(), put.descriptor_offset,
                                                                   put.length, nic::Access::read));
  if (!is_there) return true;
  put.sparse = false;
  std::vector<uint8_t> bytes;
  try {
    bytes.reserve(put.length);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (put.local != nullptr) {
    bytes.assign(put.local, put.local + put.length);
  } else {
    for (const nic::IovecElement& piece : nic::pieces_of(descriptor->list(), put.descriptor_offset, put.length)) {
      bytes.insert(bytes.end(), piece.base, piece.base + piece.length);
    }
  }
  put.descriptor = nic::Descriptor::copy_of(descriptor, std::move(bytes));
  put.local = put.descriptor->bytes();
  return true;
}

}  // namespace

int check_send(Process& process, const SendArguments& arguments, CheckedSend& send) {
  send.interface = process.owner_of(arguments.md, Kind::descriptor);
  send.md = send.interface == nullptr ? nullptr : send.interface->descriptors.find(arguments.md);
  if (send.md == nullptr || !is_inside(*send.md, *send.interface, arguments.local_offset, arguments.length))
    return PTL_ARG_INVALID;
  if (arguments.ack_req != PTL_NO_ACK_REQ && !can_be_told(*send.md, arguments.ack_req)) return PTL_ARG_INVALID;
  send.target = target_of(process, *send.interface, arguments.target);
  return send.target == nic::Rank::any() ? PTL_ARG_INVALID : PTL_OK;
}

bool quick_of(const CheckedSend& send, const SendArguments& arguments, nic::QuickPut& put) {
  const Descriptor& md = *send.md;
  if (arguments.ack_req != PTL_NO_ACK_REQ || !md.is_plain) return false;
  if (md.description.start == nullptr && arguments.length > 0) return false;
  put.target = send.target;
  put.bytes = static_cast<const uint8_t*>(md.description.start) + arguments.local_offset;
  put.length = arguments.length;
  put.portal = portal_of(*send.interface, arguments.portal);
  put.match_bits = arguments.match_bits;
  put.remote_offset = arguments.remote_offset;
  put.hdr_data = arguments.hdr_data;
  put.queue = md.queue;
  put.counter = md.counter;
  put.sparse = md.is_sparse;
  const bool counts = (md.description.options & PTL_MD_EVENT_CT_SEND) != 0 && md.counter.exists();
  if (counts) put.counted = (md.description.options & PTL_MD_EVENT_CT_BYTES) != 0 ? arguments.length : 1;
  return true;
}

int put_of(Process& process, const CheckedSend& send, const SendArguments& arguments, nic::Put& put, bool sends_later) {
  const Descriptor* const md = send.md;
  const NetworkInterface& interface = *send.interface;
  const unsigned int options = md->description.options;
  put.local = address_of(*md, arguments.local_offset, arguments.length);
  put.length = arguments.length;
  put.descriptor = md->shared;
  put.descriptor_offset = arguments.local_offset;
  put.sparse = md->is_sparse;
  const bool copies_now =
      (options & PTL_MD_VOLATILE) != 0 && arguments.length <= interface.limits.max_volatile_size && !sends_later;
  if (copies_now && arguments.length > 0 && !copy_now(process, put, md->shared)) return PTL_NO_SPACE;
  put.target = send.target;
  put.portal = portal_of(interface, arguments.portal);
  put.match_bits = arguments.match_bits;
  put.remote_offset = arguments.remote_offset;
  put.hdr_data = arguments.hdr_data;
  put.queue = queue_of(*md, interface);
  put.counter = counter_of(*md, interface);
  // An acknowledgement without effect is not asked for, so that nothing waits for it.
  const bool counts_acks = (options & PTL_MD_EVENT_CT_ACK) != 0 && put.counter.exists();
  const bool tells_acks = arguments.ack_req == PTL_ACK_REQ && put.queue.exists();
  if (tells_acks || counts_acks) put.ack_request = ack_of(arguments.ack_req);
  if (put.ack_request == nic::AckRequest::ack && !tells_acks) put.ack_request = nic::AckRequest::ct_ack;
  put.ct_send = (options & PTL_MD_EVENT_CT_SEND) != 0 && put.counter.exists();
  put.ct_ack = counts_acks;
  put.ct_bytes = (options & PTL_MD_EVENT_CT_BYTES) != 0;
  put.event_send_disable = (options & PTL_MD_EVENT_SEND_DISABLE) != 0;
  put.event_success_disable = (options & PTL_MD_EVENT_SUCCESS_DISABLE) != 0;
  put.user_ptr = reinterpret_cast<uint64_t>(arguments.user_ptr);
  return PTL_OK;
}

int reply_of(Process& process, ptl_handle_md_t handle, ptl_size_t offset, ptl_size_t length, void* user_ptr,
             nic::ReplyTo& reply) {
  const Descriptor* md = process.descriptor(handle);
  if (md == nullptr) return PTL_ARG_INVALID;
  const NetworkInterface& interface = *process.owner_of(handle, Kind::descriptor);
  if (!is_inside(*md, interface, offset, length)) return PTL_ARG_INVALID;
  const unsigned int options = md->description.options;
  reply.local = address_of(*md, offset, length);
  reply.descriptor = md->shared;
  reply.descriptor_offset = offset;
  reply.queue = queue_of(*md, interface);
  reply.counter = counter_of(*md, interface);
  reply.ct_reply = (options & PTL_MD_EVENT_CT_REPLY) != 0 && reply.counter.exists();
  reply.ct_bytes = (options & PTL_MD_EVENT_CT_BYTES) != 0;
  reply.event_success_disable = (options & PTL_MD_EVENT_SUCCESS_DISABLE) != 0;
  reply.sparse = md->is_sparse;
  reply.user_ptr = reinterpret_cast<uint64_t>(user_ptr);
  return PTL_OK;
}

int trigger_of(Process& process, ptl_handle_md_t md, const std::optional<TriggerArguments>& trigger_arguments,
               std::optional<nic::Trigger>& trigger) {
  if (!trigger_arguments) return PTL_OK;
  const Counter* counter = process.counter(trigger_arguments->counter);
  if (counter == nullptr || decode(md).interface != decode(trigger_arguments->counter).interface)
    return PTL_ARG_INVALID;
  trigger = nic::Trigger{counter->id, trigger_arguments->threshold, counter->every};
  return PTL_OK;
}

}  // namespace spinloom::calls
