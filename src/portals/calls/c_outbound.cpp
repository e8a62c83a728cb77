// Streaming puts, process-puts and their contexts, persistent triggered operations, counters that reset themselves.
#include "portals/calls/call.hpp"
#include "portals/calls/contexts.hpp"
#include "portals/calls/movement.hpp"
#include "portals4_spin.h"

namespace spinloom::calls {
namespace {

// Fills in a put from a descriptor whose memory must be one range. `length` is that of the message, which may differ
// from arguments.length.
int put_from(Process& process, const SendArguments& arguments, ptl_size_t length, nic::Put& put) {
  CheckedSend send;
  int code = check_send(process, arguments, send);
  if (code == PTL_OK) code = put_of(process, send, arguments, put, true);
  if (code != PTL_OK) return code;
  const Descriptor& md = *send.md;
  const NetworkInterface& interface = *send.interface;
  if (md.shared->list().exists() || length > interface.limits.max_msg_size) return PTL_ARG_INVALID;
  put.local = static_cast<const uint8_t*>(md.description.start) + arguments.local_offset;
  put.length = length;
  return put.local == nullptr && length > 0 ? PTL_ARG_INVALID : PTL_OK;
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::Kind;
using spinloom::calls::nic_call;
using spinloom::calls::Process;

extern "C" {

int PtlSPutStart(ptl_handle_md_t md_handle, ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target_id,
                 ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                 ptl_hdr_data_t hdr_data, ptl_region_t first, ptl_handle_sput_t* sput_handle) {
  return nic_call("PtlSPutStart", [&](Process& process) -> int {
    using namespace spinloom::calls;
    if (sput_handle == nullptr) return PTL_ARG_INVALID;
    spinloom::nic::Put put;
    const int code = put_from(
        process, {md_handle, 0, 0, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data}, length,
        put);
    if (code != PTL_OK) return code;
    const ptl_size_t memory_length = process.descriptor(md_handle)->length;
    const auto stream = process.portals().stream_start(put, memory_length, {first.offset, first.size});
    if (!stream) return code_of(stream.error());
    *sput_handle = process.owner_of(md_handle, Kind::descriptor)->streams.add(*stream);
    return PTL_OK;
  });
}

int PtlSPutStream(ptl_handle_sput_t sput_handle, ptl_region_t region, int end) {
  return nic_call("PtlSPutStream", [&](Process& process) -> int {
    auto* owner = process.owner_of(sput_handle, Kind::stream);
    const auto* stream = owner == nullptr ? nullptr : owner->streams.find(sput_handle);
    if (stream == nullptr) return PTL_ARG_INVALID;
    const auto appended = process.portals().stream_append(*stream, {region.offset, region.size}, end != 0);
    if (!appended) return spinloom::calls::code_of(appended.error());
    if (end != 0) owner->streams.remove(sput_handle);
    return PTL_OK;
  });
}

int PtlSpinContextAlloc(ptl_handle_ni_t ni_handle, const ptl_spin_t* handlers, ptl_handle_spin_t* context) {
  return nic_call("PtlSpinContextAlloc", [&](Process& process) -> int {
    auto* interface = process.interface_of(ni_handle);
    if (interface == nullptr || handlers == nullptr || context == nullptr) return PTL_ARG_INVALID;
    spinloom::calls::Spin spin;
    const int code = spinloom::calls::make_spin(process, *handlers, *interface, spin);
    if (code == PTL_OK) *context = interface->contexts.add(spin);
    return code;
  });
}

int PtlSpinContextFree(ptl_handle_spin_t context) {
  return nic_call("PtlSpinContextFree", [&](Process& process) -> int {
    auto* owner = process.owner_of(context, Kind::context);
    const auto* spin = owner == nullptr ? nullptr : owner->contexts.find(context);
    if (spin == nullptr) return PTL_ARG_INVALID;
    if (!process.portals().context_free(spin->context)) return PTL_IN_USE;
    process.release({{}, spin->constants});
    owner->contexts.remove(context);
    return PTL_OK;
  });
}

int PtlProcessPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t memory_length, ptl_size_t length,
                  ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                  ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_spin_t context) {
  return nic_call("PtlProcessPut", [&](Process& process) -> int {
    using namespace spinloom::calls;
    spinloom::nic::Put put;
    const int code = put_from(process,
                              {md_handle, local_offset, memory_length, ack_req, target_id, pt_index, match_bits,
                               remote_offset, user_ptr, hdr_data},
                              length, put);
    if (code != PTL_OK) return code;
    const Spin* spin = process.owner_of(md_handle, Kind::descriptor)->contexts.find(context);
    if (spin == nullptr) return PTL_ARG_INVALID;
    const spinloom::Status sent = process.portals().process_put(put, memory_length, spin->context);
    const bool is_for_entries =
        !sent && sent.error().code == spinloom::Code::unsupported;  // the context has other handlers
    return is_for_entries ? static_cast<int>(PTL_ARG_INVALID) : return_code(sent);
  });
}

int PtlCTPersist(ptl_handle_ct_t ct_handle, ptl_size_t every) {
  return nic_call("PtlCTPersist", [&](Process& process) -> int {
    auto* counter = process.counter(ct_handle);
    if (counter == nullptr) return PTL_ARG_INVALID;
    counter->every = every;
    return PTL_OK;
  });
}

int PtlCTAutoReset(ptl_handle_ct_t ct_handle, ptl_size_t threshold) {
  return nic_call("PtlCTAutoReset", [&](Process& process) -> int {
    const auto* counter = process.counter(ct_handle);
    if (counter == nullptr) return PTL_ARG_INVALID;
    return spinloom::calls::return_code(process.portals().ct_auto_reset(counter->id, threshold));
  });
}

}  // extern "C"
