// Streaming puts and process-puts: the host's checks before a command goes to the NIC.
#include <tuple>

#include "portals/interface/interface.hpp"

namespace spinloom::portals {
namespace {

Status check_region(const nic::PutRegion& region, uint64_t memory_bytes, uint64_t named_bytes, uint64_t length) {
  if (region.offset > memory_bytes || region.length > memory_bytes - region.offset) {
    return fail(Code::invalid, "streaming put: a region of ", region.length, " B at offset ", region.offset,
                " is not inside its memory of ", memory_bytes, " B");
  }
  if (region.length <= length - named_bytes) return {};
  return fail(Code::invalid, "streaming put: a region of ", region.length, " B after ", named_bytes,
              " B goes beyond the message's declared length of ", length, " B");
}

// Returns an Error if the memory is a list: regions and handlers name places in one contiguous range.
Status check_contiguous(const char* call, const PutArguments& arguments) {
  if (arguments.local != nullptr || arguments.length == 0) return {};
  return fail(Code::unsupported, call, ": its memory is a list; give one range");
}

}  // namespace

Result<nic::StreamId> Interface::stream_start(const PutArguments& arguments, uint64_t memory_bytes,
                                              const nic::PutRegion& first) {
  SPL_TRY(check("stream_start", arguments));
  SPL_TRY(check_contiguous("stream_start", arguments));
  SPL_TRY(check_region(first, memory_bytes, 0, arguments.length));
  SPL_ASSIGN(const nic::StreamId stream, streams_.take());
  if (stream_records_.size() <= stream.value) stream_records_.resize(stream.value + 1);
  stream_records_[stream.value] = {memory_bytes, arguments.length, first.length};
  std::ignore = send_command(nic::StreamStart{stream, arguments, memory_bytes, first}, {});
  return stream;
}

Status Interface::stream_append(nic::StreamId stream, const nic::PutRegion& region, bool end) {
  SPL_TRY(streams_.check(stream));
  StreamRecord& record = stream_records_[stream.value];
  SPL_TRY(check_region(region, record.memory_bytes, record.named_bytes, record.length));
  const uint64_t named_bytes = record.named_bytes + region.length;
  if (end && named_bytes < record.length) {
    return fail(Code::invalid, "streaming put: it ends after ", named_bytes, " B of the declared ", record.length,
                " B; declare the length that the regions have");
  }
  record.named_bytes = named_bytes;
  port_.submit(nic::Command{nic::StreamAppend{stream, region, end}, {}, 0});
  if (end) streams_.give_back(stream);  // commands arrive in order: the next stream with this id comes after the end
  return {};
}

Status Interface::process_put(const PutArguments& arguments, uint64_t memory_bytes, nic::ContextId context,
                              const std::optional<nic::Trigger>& trigger) {
  SPL_TRY(check("process_put", arguments));
  SPL_TRY(check_contiguous("process_put", arguments));
  SPL_TRY(contexts_.check(context));
  if (!context_fills_packets_[context.value]) {
    return fail(
        Code::unsupported, "process_put: context ", context,
        " has no payload handler, or also has a header handler, a completion handler or a user header; handlers "
        "of outgoing messages only fill packets");
  }
  return send_command(nic::ProcessPut{arguments, memory_bytes, context}, trigger);
}

}  // namespace spinloom::portals
