// The programs of the array's hosts: what each does when something has become readable for it.
#include <algorithm>
#include <cstring>

#include "app/studies/raid_array.hpp"
#include "simulated/node/host_model.hpp"

namespace spinloom::app {
namespace {

// Returns the work of an exclusive or: it reads one array, and touches and writes `written` others.
portals::HostWork exclusive_or(uint64_t bytes, uint64_t written) {
  portals::HostWork work;
  work.bytes = bytes;
  work.touches = [bytes, written](const portals::HostWork::Touch& touch) {
    constexpr uint64_t word = 8;
    const uint64_t array_stride = bytes + 4096;
    for (uint64_t at = 0; at < bytes; at += word) {
      touch(at, std::min(word, bytes - at), false);
      for (uint64_t array = 1; array <= written; ++array)
        touch(array * array_stride + at, std::min(word, bytes - at), true);
    }
  };
  return work;
}

// Returns the work of reading a request, which the NIC has just written to memory.
portals::HostWork look_at(uint64_t bytes) {
  portals::HostWork work;
  work.touches = [bytes](const portals::HostWork::Touch& touch) { touch(0, bytes, false); };
  return work;
}

}  // namespace

void RaidArray::on_counters(uint32_t rank) {
  if (rank == client_rank) return on_client_counters();
  if (!uses_hosts()) return;
  if (rank == parity_rank) return on_parity_counters();
  on_data_counters(rank - first_data_rank);
}

void RaidArray::on_client_counters() {
  if (end_ == Time::never() && client_.interface->ct_get(client_.counter).success >= expected_count_) {
    end_ = world_.node(client_rank).now();
  }
}

void RaidArray::on_parity_counters() {
  if (is_read()) return;
  for (uint32_t index = 0; index < data_nodes; ++index) {
    DataNode& node = nodes_[index];
    const auto round = static_cast<uint64_t>(round_);
    if (node.applied_round == round_ || parity_side_.interface->ct_get(node.delta_landed).success < round) continue;
    node.applied_round = round_;
    schedule_work(parity_processor_, applied, index, exclusive_or(node.delta.size(), 1));
  }
}

void RaidArray::on_data_counters(uint32_t index) {
  DataNode& node = nodes_[index];
  const auto due = [&](nic::CounterId counter, int& done) {
    if (done == round_ || node.side.interface->ct_get(counter).success < static_cast<uint64_t>(round_)) return false;
    done = round_;
    return true;
  };
  if (is_read()) {
    if (config_.way == StudyWay::rdma && due(node.asked, node.served_round)) {
      schedule_work(node.processor, served, index, look_at(sizeof node.request));
    }
    return;
  }
  if (due(node.side.counter, node.updated_round)) {
    schedule_work(node.processor, updated, index, exclusive_or(node.written.size(), 2));
  }
  if (config_.way == StudyWay::rdma && due(node.acknowledged, node.answered_round)) {
    schedule_work(node.processor, answered, index, {});
  }
}

// Lets a processor see an event, work, and post a call; then comes the step `then`.
void RaidArray::schedule_work(simulated::Resource& processor, Step then, uint32_t index,
                              const portals::HostWork& work) {
  const auto& host = config_.profile.host;
  const Time duration = host.memory_latency + simulated::host_cost(config_.profile, work).total() + host.call;
  world_.events().at(processor.serve(world_.node(client_rank).now(), duration).end, *this, then, index);
}

void RaidArray::on_event(uint32_t code, uint64_t argument) {
  const auto index = static_cast<uint32_t>(argument);
  DataNode& node = nodes_[index];
  const uint64_t offset = node.piece.offset;
  portals::Interface& host = *node.side.interface;
  Status posted;
  switch (static_cast<Step>(code)) {
    case updated:
      for (size_t i = 0; i < node.delta.size(); ++i) {
        node.delta[i] = node.block[offset + i] ^ node.landed[i];
        node.block[offset + i] = node.landed[i];
      }
      posted = host.put(node.side.put(node.delta, parity_side_, raid_bits::delta + index));
      break;
    case applied:
      for (size_t i = 0; i < node.delta_at_parity.size(); ++i) parity_[offset + i] ^= node.delta_at_parity[i];
      posted = parity_side_.interface->put(parity_side_.put(empty_, node.side, raid_bits::acknowledged));
      break;
    case answered: posted = host.put(node.side.put(empty_, client_, raid_bits::stored)); break;
    case served: {
      ReadRequest request;
      std::memcpy(&request, node.request_landed.data(), sizeof request);
      SPL_ASSERT(request.offset + request.bytes <= node.block.size(), "a request inside the block");
      portals::PutArguments put = node.side.put(empty_, client_, raid_bits::piece);
      put.local = node.block.data() + request.offset;
      put.length = request.bytes;
      posted = host.put(put);
      break;
    }
  }
  SPL_ASSERT(posted.ok(), posted.error().message);
}

}  // namespace spinloom::app
