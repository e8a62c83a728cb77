#include "portals/strategies/receive.hpp"

#include <algorithm>
#include <span>

#include "memory/layout/copy.hpp"
#include "memory/layout/iovec.hpp"
#include "memory/layout/overlap.hpp"
#include "portals/strategies/unpack.hpp"

namespace spinloom::strategies {

Result<std::unique_ptr<Receive>> Receive::prepare(portals::Interface& interface, nic::PortalIndex portal,
                                                  nic::QueueId queue, const std::vector<HandlerImage>& images,
                                                  Strategy strategy, const Message& message, const NicFacts& facts,
                                                  const HandlerCost& cost, std::optional<Plan> planned,
                                                  std::string_view family) {
  SPL_ASSIGN(const auto overlap, layout::find_overlap(message.type, message.count));
  if (overlap) {
    return fail(Code::invalid, "the receive type writes some byte twice, which has no defined result in MPI: ",
                layout::describe(*overlap));
  }
  std::unique_ptr<Receive> receive(new Receive(interface, portal, queue, strategy, message, facts));
  if (unpacks_on_host(strategy)) {
    receive->packed_.resize(static_cast<size_t>(message.bytes));
    return receive;
  }
  if (strategy == Strategy::rdma_direct && message.blocks != 1) {
    return fail(Code::unsupported, "a plain receive puts contiguous data in its place; these are ", message.blocks,
                " blocks");
  }
  if (strategy == Strategy::iovec || strategy == Strategy::rdma_direct) return receive;
  if (planned) {
    receive->plan_ = std::move(planned);
  } else {
    SPL_ASSIGN(receive->plan_, strategies::plan(strategy, message, facts, cost));
  }
  SPL_ASSIGN(receive->installed_, install(interface, images, text(family, receive->plan_->image), *receive->plan_));
  return receive;
}

Status Receive::post(uint8_t* base, uint64_t match_bits) {
  base_ = base;
  SPL_ASSIGN(nic::Entry result, entry(base));
  result.match_bits = match_bits;
  const auto appended = interface_.me_append(portal_, result);
  return appended ? Status() : Status(appended.error());
}

Result<nic::Entry> Receive::entry(uint8_t* base) {
  nic::Entry result;
  result.options.use_once = true;
  result.options.event_unlink_disable = true;
  if (plan_) {
    if (state_is_dirty_ && !plan_->state.empty())
      SPL_TRY(interface_.memory_write(*installed_.state_offset, plan_->state));
    state_is_dirty_ = true;
    result.start = base + message_.reach.first;
    result.length = static_cast<uint64_t>(message_.reach.last - message_.reach.first);
    result.context = *installed_.context;
    result.options.event_success_disable = true;  // the completion handler's DMA reports success
  } else if (strategy_ == Strategy::iovec) {
    SPL_TRY(list_pieces(base));
    result.iovec = iovec_;
    result.length = static_cast<uint64_t>(message_.bytes);
  } else if (strategy_ == Strategy::rdma_direct) {
    result.start = base + message_.reach.first;
    result.length = static_cast<uint64_t>(message_.bytes);
  } else {
    result.start = packed_.data();
    result.length = packed_.size();
  }
  return result;
}

Result<nic::Event> Receive::finish() {
  SPL_ASSIGN(const nic::Event event, interface_.eq_wait(queue_));
  if (event.fail != nic::Fail::ok) {
    return fail(Code::fault, "the message failed on the NIC: ", nic::name_of(event.fail), ", ", event.dropped_bytes,
                " B dropped");
  }
  if (event.kind == nic::EventKind::put_overflow) {
    SPL_TRY(unpack(base_, reinterpret_cast<const uint8_t*>(event.start), message_.bytes));
    return event;
  }
  const nic::EventKind expected = plan_ ? nic::EventKind::dma : nic::EventKind::put;
  SPL_ASSERT(event.kind == expected, "event kind ", static_cast<int>(event.kind));
  if (unpacks_on_host(strategy_)) SPL_TRY(unpack(base_, packed_.data(), message_.bytes));
  return event;
}

Status Receive::list_pieces(uint8_t* base) {
  SPL_ASSIGN(const auto pieces, layout::export_iovec(message_.blob, 1));
  iovec_.clear();
  for (const layout::Piece& piece : pieces) {
    iovec_.push_back({base + piece.offset, static_cast<uint64_t>(piece.bytes)});
  }
  return {};
}

uint64_t Receive::nic_memory_bytes() const {
  if (plan_) return plan_->nic_memory_bytes();
  return std::min<uint64_t>(iovec_.size(), iovec_entries_) * sizeof(nic::IovecElement);
}

uint64_t Receive::nic_bytes_moved() const {
  if (plan_) return plan_->nic_memory_bytes();
  return iovec_.size() * sizeof(nic::IovecElement);
}

Status Receive::unpack(uint8_t* base, const uint8_t* packed, int64_t bytes) {
  const bool interprets = strategy_ != Strategy::host_best && strategy_ != Strategy::host_warm;
  if (interprets && bytes == message_.bytes) {
    strategies::unpack(message_, packed, base + message_.reach.first);
  } else {
    uint8_t* const origin = base + message_.reach.first - message_.blob.true_lb();
    SPL_TRY(layout::unpack(message_.blob, 1, reinterpret_cast<std::byte*>(origin), 0, bytes,
                           std::as_bytes(std::span(packed, static_cast<size_t>(bytes)))));
  }
  using Kind = portals::HostWork::Kind;
  portals::HostWork work = unpack_work(message_, interprets ? Kind::interpret : Kind::copy, bytes);
  work.is_warm = strategy_ == Strategy::host_warm;
  return interface_.host_work(work);
}

Status Receive::release() { return uninstall(interface_, installed_); }

}  // namespace spinloom::strategies
