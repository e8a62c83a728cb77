#include "portals/strategies/asking_send.hpp"

#include <algorithm>

#include "portals/strategies/pack.hpp"
#include "spinloom/rendezvous.h"

namespace spinloom::strategies {

Result<std::unique_ptr<AskingSend>> AskingSend::prepare(portals::Interface& interface, nic::PortalIndex portal,
                                                        const std::vector<HandlerImage>& images, SendStrategy strategy,
                                                        const Message& message, const NicFacts& facts,
                                                        const uint8_t* base, uint32_t number) {
  if (strategy == SendStrategy::streaming) {
    return fail(Code::unsupported, "a streaming put does not ask first: its host would have to wait for the answer");
  }
  if (message.bytes == 0 || static_cast<uint64_t>(message.bytes) > SPL_REQUEST_BYTES_MASK) {
    return fail(Code::unsupported, "a message of ", message.bytes, " B does not ask first");
  }
  std::unique_ptr<AskingSend> send(new AskingSend(interface, portal, message, base, number));
  if (message.blocks == 1) {
    // The message lies in memory as it is sent.
  } else if (strategy == SendStrategy::pack) {
    send->packed_.resize(static_cast<size_t>(message.bytes));
  } else {
    const auto handlers = strategy == SendStrategy::outbound_seek ? Strategy::seek : Strategy::specialised;
    SPL_ASSIGN(send->plan_, plan(handlers, message, facts, {}));
    SPL_ASSIGN(send->installed_, install(interface, images, text("gather_", send->plan_->image), *send->plan_));
  }
  if (const Status prepared = send->prepare_entry(images); !prepared) {
    SPL_TRY(send->release());
    return prepared.error();
  }
  return send;
}

Status AskingSend::prepare_entry(const std::vector<HandlerImage>& images) {
  SPL_ASSIGN(context_, create_context(interface_, images, "answer", sizeof(uint64_t)));
  SPL_ASSIGN(counter_, interface_.ct_alloc());
  nic::Entry entry;
  // Handlers only read it.
  entry.start = packed_.empty() ? const_cast<uint8_t*>(base_) + message_.reach.first : packed_.data();
  entry.length = packed_.empty() ? static_cast<uint64_t>(message_.reach.last - message_.reach.first) : packed_.size();
  entry.match_bits = SPL_ANSWER_BITS | number_;
  entry.counter = counter_;
  entry.context = context_;
  entry.options.event_comm_disable = true;
  entry.options.event_unlink_disable = true;
  SPL_ASSIGN(entry_, interface_.me_append(portal_, entry));
  return {};
}

Status AskingSend::start(nic::Rank target, uint64_t match_bits) {
  if (!packed_.empty()) {
    SPL_TRY(pack(message_, base_ + message_.reach.first, packed_));
    SPL_TRY(interface_.host_work(pack_work(message_)));
  }
  const auto bytes = static_cast<uint64_t>(message_.bytes);
  const uint64_t gather_context = plan_ ? uint64_t{installed_.context->value} + 1 : 0;
  SPL_TRY(interface_.ct_set(counter_, {gather_context << SPL_SEND_CONTEXT_SHIFT | bytes, 0}));
  portals::PutArguments request;
  request.local = packed_.empty() ? base_ + message_.reach.first : packed_.data();
  request.length = 1;
  request.target = target;
  request.portal = portal_;
  request.match_bits = match_bits;
  request.hdr_data = uint64_t{number_} << SPL_REQUEST_BYTES_BITS | bytes;
  request.event_send_disable = true;
  SPL_TRY(interface_.host_work(post_work(/*walked_blocks=*/0)));
  return interface_.put(request);
}

Status AskingSend::finish() {
  const uint64_t gather_context = plan_ ? uint64_t{installed_.context->value} + 1 : 0;
  const uint64_t sent = (gather_context << SPL_SEND_CONTEXT_SHIFT | static_cast<uint64_t>(message_.bytes)) + 1;
  SPL_ASSIGN(const nic::CounterValue counted, interface_.ct_wait(counter_, sent));
  if (counted.failure == 0) return {};
  return fail(Code::fault, "the message failed on the sender's NIC");
}

Status AskingSend::release() {
  if (entry_.exists()) SPL_TRY(interface_.me_unlink(entry_));
  if (counter_.exists()) SPL_TRY(interface_.ct_free(counter_));
  if (context_.exists()) SPL_TRY(interface_.context_free(context_));
  entry_ = {};
  counter_ = {};
  context_ = {};
  return uninstall(interface_, installed_);
}

}  // namespace spinloom::strategies
