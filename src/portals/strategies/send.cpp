#include "portals/strategies/send.hpp"

#include <array>
#include <string>
#include <utility>

#include "portals/strategies/pack.hpp"
#include "portals/strategies/pieces.hpp"

namespace spinloom::strategies {
namespace {

// The order is that of the tables that the tools print.
constexpr std::array<std::pair<const char*, SendStrategy>, 4> send_strategy_names{{
    {"pack", SendStrategy::pack},
    {"streaming", SendStrategy::streaming},
    {"outbound-specialised", SendStrategy::outbound_specialised},
    {"outbound-seek", SendStrategy::outbound_seek},
}};

}  // namespace

const char* name_of(SendStrategy strategy) {
  for (const auto& [name, value] : send_strategy_names) {
    if (value == strategy) return name;
  }
  return "unknown";
}

Result<SendStrategy> send_strategy_named(std::string_view name) {
  std::string names;
  for (const auto& [candidate, value] : send_strategy_names) {
    if (candidate == name) return value;
    names += names.empty() ? "" : ", ";
    names += candidate;
  }
  return fail(Code::invalid, "unknown way to send \"", name, "\"; there are ", names);
}

Result<std::unique_ptr<Send>> Send::prepare(portals::Interface& interface, nic::QueueId queue,
                                            const std::vector<HandlerImage>& images, SendStrategy strategy,
                                            const Message& message, const NicFacts& facts) {
  std::unique_ptr<Send> send(new Send(interface, queue, strategy, message));
  switch (strategy) {
    case SendStrategy::pack: send->packed_.resize(static_cast<size_t>(message.bytes)); return send;
    case SendStrategy::streaming: return send;
    case SendStrategy::outbound_specialised:
    case SendStrategy::outbound_seek: break;
  }
  const auto handlers = strategy == SendStrategy::outbound_seek ? Strategy::seek : Strategy::specialised;
  SPL_ASSIGN(send->plan_, strategies::plan(handlers, message, facts, {}));
  SPL_ASSIGN(send->installed_, install(interface, images, "gather_" + std::string(send->plan_->image), *send->plan_));
  return send;
}

Status Send::start(const uint8_t* base, portals::PutArguments put) {
  const uint8_t* const first = base + message_.reach.first;
  const auto memory_bytes = static_cast<uint64_t>(message_.reach.last - message_.reach.first);
  put.local = first;
  put.length = static_cast<uint64_t>(message_.bytes);
  put.queue = queue_;
  calls_ = 0;
  if (strategy_ == SendStrategy::streaming) return stream(put, memory_bytes);
  if (strategy_ == SendStrategy::pack) {
    SPL_TRY(pack(message_, first, packed_));
    SPL_TRY(interface_.host_work(pack_work(message_)));
    put.local = packed_.data();
  }
  ++calls_;
  SPL_TRY(interface_.host_work(post_work(/*walked_blocks=*/0)));
  if (plan_) return interface_.process_put(put, memory_bytes, *installed_.context);
  return interface_.put(put);
}

// The host looks for each region while the regions before it are on their way.
Status Send::stream(const portals::PutArguments& put, uint64_t memory_bytes) {
  std::optional<nic::StreamId> stream;
  Status posted;
  for_each_piece(message_.blob, message_.bytes, [&](int64_t offset, uint64_t at, uint64_t bytes) {
    if (!posted) return;
    posted = interface_.host_work(post_work(/*walked_blocks=*/1));
    if (!posted) return;
    ++calls_;
    const nic::PutRegion region{static_cast<uint64_t>(offset), bytes};
    if (stream) {
      posted = interface_.stream_append(*stream, region, at + bytes == put.length);
      return;
    }
    const auto started = interface_.stream_start(put, memory_bytes, region);
    if (!started) {
      posted = started.error();
      return;
    }
    stream = *started;
    // The start carries no end flag, so a message of one region ends with an empty region.
    if (bytes < put.length) return;
    posted = interface_.host_work(post_work(/*walked_blocks=*/0));
    ++calls_;
    if (posted) posted = interface_.stream_append(*stream, {}, true);
  });
  return posted;
}

Result<nic::Event> Send::finish() {
  SPL_ASSIGN(const nic::Event event, interface_.eq_wait(queue_));
  if (event.fail != nic::Fail::ok) {
    return fail(Code::fault, "the message failed on the sender's NIC: ", nic::name_of(event.fail));
  }
  SPL_ASSERT(event.kind == nic::EventKind::send, "event kind ", nic::name_of(event.kind));
  return event;
}

Status Send::release() { return uninstall(interface_, installed_); }

}  // namespace spinloom::strategies
