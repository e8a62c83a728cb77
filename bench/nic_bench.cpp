// Host time of the NIC engine's hot pair: a handler's DMA call and the DMA's end. A message of 4 MiB with blocks
// of 4 bytes makes a million of them. Prints host nanoseconds, no modelled time.
#include <chrono>
#include <cstdio>
#include <vector>

#include "nic/nic.hpp"
#include "spinloom/handler.h"

int main() {
  using namespace spinloom;
  using namespace spinloom::nic;
  NicLimits limits;
  Nic nic(Rank{0}, limits);
  Actions out;
  std::vector<uint8_t> memory(1 << 23);
  std::vector<uint8_t> source(1 << 22);
  nic.on_command({}, Command{QueueAlloc{QueueId{0}, 64}, {}, 0}, out);
  nic.on_command({}, Command{PortalAlloc{PortalIndex{0}, QueueId{0}}, {}, 0}, out);
  Context context;
  context.payload_entry = 1;
  nic.on_command({}, Command{ContextCreate{ContextId{0}, context}, {}, 0}, out);
  Entry entry;
  entry.start = memory.data();
  entry.length = memory.size();
  entry.context = ContextId{0};
  nic.on_command({}, Command{Append{EntryId{0}, PortalIndex{0}, ListKind::priority, entry}, {}, 0}, out);

  constexpr uint64_t message_bytes = 1 << 22;
  constexpr uint64_t block = 4;
  constexpr size_t in_flight = 64;
  for (int round = 0; round < 5; ++round) {
    uint64_t pairs = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t offset = 0; offset < message_bytes; offset += limits.payload_bytes) {
      Packet packet;
      packet.source = Rank{1};
      packet.message = static_cast<uint64_t>(round);
      packet.message_length = message_bytes;
      packet.offset = offset;
      packet.payload = {PayloadRef::Space::local, source.data() + offset, limits.payload_bytes};
      packet.fields.portal_index = 0;
      out.clear();
      nic.on_packet({}, packet, out);
      const HerId her = std::get<BufferPacket>(out.list.at(0)).her;
      out.clear();
      nic.on_her_ready({}, her, out);
      std::vector<DmaId> open(in_flight);
      size_t issued = 0;
      for (uint64_t byte = 0; byte < limits.payload_bytes; byte += block) {
        HandlerCall call;
        call.call = SPL_CALL_DMA_TO_HOST_NB;
        call.options = PTL_DMA_NO_EVENT;
        call.local_memory = LocalMemory::packet;
        call.local = source.data() + offset + byte;
        call.offset = 2 * (offset + byte);
        call.length = block;
        if (issued >= in_flight) {
          out.clear();
          nic.on_dma_done({}, open[issued % in_flight], out);
        }
        out.clear();
        if (nic.on_handler_call({}, her, call, out)) return 1;
        open[issued++ % in_flight] = std::get<DmaWrite>(out.list.at(0)).dma;
        ++pairs;
      }
      for (size_t i = issued - std::min(issued, in_flight); i < issued; ++i) {
        out.clear();
        nic.on_dma_done({}, open[i % in_flight], out);
      }
      out.clear();
      nic.on_handler_done({}, her, HandlerEnd::returned, SUCCESS, out);
    }
    const auto end = std::chrono::steady_clock::now();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
    std::printf("%llu DMA calls with their ends: %lld.%01lld ns a pair\n", static_cast<unsigned long long>(pairs),
                static_cast<long long>(ns / static_cast<long long>(pairs)),
                static_cast<long long>(ns * 10 / static_cast<long long>(pairs) % 10));
  }
  return nic.state().messages_open == 0 ? 0 : 1;
}
