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
    const uint64_t apart = bytes + 4096;
    for (uint64_t at = 0; at < bytes; at += word) {
      touch(at, std::min(word, bytes - at), false);
      for (uint64_t place = 1; place <= written; ++place) touch(place * apart + at, std::min(word, bytes - at), true);
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

void RaidArray::told(uint32_t rank) {
  if (rank == client_rank) return told_client();
  if (!by_hosts()) return;
  if (rank == parity_rank) return told_parity();
  told_data(rank - first_data_rank);
}

void RaidArray::told_client() {
  if (done_ == Time::never() && client_.interface->ct_get(client_.counter).success >= due_) {
    done_ = world_.node(client_rank).now();
  }
}

void RaidArray::told_parity() {
  if (reads()) return;
  for (uint32_t index = 0; index < data_nodes; ++index) {
    DataNode& node = nodes_[index];
    const auto round = static_cast<uint64_t>(round_);
    if (node.applied_round == round_ || parity_side_.interface->ct_get(node.delta_landed).success < round) continue;
    node.applied_round = round_;
    work(parity_processor_, applied, index, exclusive_or(node.delta.size(), 1));
  }
}

void RaidArray::told_data(uint32_t index) {
  DataNode& node = nodes_[index];
  const auto due = [&](nic::CounterId counter, int& done) {
    if (done == round_ || node.side.interface->ct_get(counter).success < static_cast<uint64_t>(round_)) return false;
    done = round_;
    return true;
  };
  if (reads()) {
    if (config_.way == StudyWay::rdma && due(node.asked, node.served_round)) {
      work(node.processor, served, index, look_at(sizeof node.request));
    }
    return;
  }
  if (due(node.side.counter, node.updated_round)) {
    work(node.processor, updated, index, exclusive_or(node.written.size(), 2));
  }
  if (config_.way == StudyWay::rdma && due(node.acknowledged, node.answered_round)) {
    work(node.processor, answered, index, {});
  }
}

// Lets a processor see an event, work, and post a call; then comes the step `then`.
void RaidArray::work(simulated::Resource& processor, Step then, uint32_t index, const portals::HostWork& what) {
  const auto& host = config_.profile.host;
  const Time took = host.memory_latency + simulated::host_cost(config_.profile, what).total() + host.call;
  world_.events().at(processor.serve(world_.node(client_rank).now(), took).end, *this, then, index);
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
      for (size_t i = 0; i < node.delta_there.size(); ++i) parity_[offset + i] ^= node.delta_there[i];
      posted = parity_side_.interface->put(parity_side_.put(nothing_, node.side, raid_bits::acknowledged));
      break;
    case answered: posted = host.put(node.side.put(nothing_, client_, raid_bits::stored)); break;
    case served: {
      ReadRequest wanted;
      std::memcpy(&wanted, node.request_landed.data(), sizeof wanted);
      SPL_ASSERT(wanted.offset + wanted.bytes <= node.block.size(), "a request inside the block");
      portals::PutArguments put = node.side.put(nothing_, client_, raid_bits::piece);
      put.local = node.block.data() + wanted.offset;
      put.length = wanted.bytes;
      posted = host.put(put);
      break;
    }
  }
  SPL_ASSERT(posted.ok(), posted.error().message);
}

}  // namespace spinloom::app
