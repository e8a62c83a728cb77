// Objects - the records behind the handles of a network interface.
//
// Contract: plain records of the program's arguments and of the NIC's ids. The files of the C functions read and
//   write them.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nic/portals/descriptor.hpp"
#include "nic/portals/entry.hpp"
#include "nic/portals/ids.hpp"
#include "portals/calls/handle.hpp"

namespace spinloom::calls {

struct Queue {
  nic::QueueId id;
};

struct Counter {
  nic::CounterId id;
  ptl_size_t every = 0;  // triggered operations start again each time the counter has grown by this (Trigger), unless 0
};

struct Descriptor {
  ptl_md_t description{};
  ptl_size_t length = 0;  // the number of bytes, also of a list
  nic::QueueId queue;
  nic::CounterId counter;
  nic::DescriptorRef shared;  // shared with the operations on it
  bool is_plain = false;  // contiguous, and a put from it without acknowledgement makes no event
  bool is_sparse = false;  // parts of the memory may not be there
};

struct HpuMemory {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The NIC objects of an entry's handlers.
struct Spin {
  nic::ContextId context;
  std::optional<uint64_t> constants;  // offset in NIC memory, if the context has constants
};

struct Entry {
  nic::EntryId id;
  ptl_pt_index_t portal = 0;
  Spin spin;
  std::vector<nic::IovecElement> list;  // the NIC reads this list as long as it knows the entry
};

// The index of an interface among the four of a process, which follows from its options.
[[nodiscard]] constexpr uint32_t index_of(unsigned int options) {
  return ((options & PTL_NI_NO_MATCHING) != 0 ? 1u : 0u) + ((options & PTL_NI_PHYSICAL) != 0 ? 2u : 0u);
}

struct NetworkInterface {
  NetworkInterface(uint32_t number_, uint32_t generation)
      : number(number_),
        handle(encode({Kind::interface, number_, generation, 0})),
        descriptors(Kind::descriptor, number_, generation),
        entries(Kind::entry, number_, generation),
        queues(Kind::queue, number_, generation),
        counters(Kind::counter, number_, generation),
        memories(Kind::memory, number_, generation),
        streams(Kind::stream, number_, generation),
        contexts(Kind::context, number_, generation) {}

  [[nodiscard]] bool is_matching() const { return number % 2 == 0; }
  [[nodiscard]] bool is_logical() const { return number < 2; }

  uint32_t number;
  ptl_handle_ni_t handle;
  uint32_t users = 0;  // calls of PtlNIInit, less those of PtlNIFini
  bool is_closing = false;  // the last PtlNIFini or PtlFini is under way: handles are invalid
  bool is_releasing = false;  // a thread is giving the interface's objects back
  uint32_t open_bundles = 0;  // bundles that have begun and not ended
  ptl_ni_limits_t limits{};
  bool may_miss_memory = false;  // the program has asked to name memory that is not all there
  std::vector<ptl_process_t> map;  // node and process of each rank of a logical interface
  std::vector<uint32_t> rank_of;  // each node's rank, or PTL_RANK_ANY
  bool is_mapped = false;  // the program has set the map; until then it is the launcher's
  std::vector<bool> portals;  // one for each index of the portal table: true if the entry is allocated
  ptl_pt_index_t next_portal = 0;  // the search for a free index begins here
  HandleTable<Descriptor> descriptors;
  HandleTable<Entry> entries;
  HandleTable<Queue> queues;
  HandleTable<Counter> counters;
  HandleTable<HpuMemory> memories;
  HandleTable<nic::StreamId> streams;  // streaming puts that have not ended yet
  HandleTable<Spin> contexts;  // contexts of process-puts
};

}  // namespace spinloom::calls
