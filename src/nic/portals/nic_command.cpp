// The host's commands, each taken to the part that performs it. All trouble is the host's: it becomes an answer, or is
// noted for reports if the command has no token.
#include <type_traits>
#include <utility>

#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

void Nic::Impl::note_failure(const Error& error) {
  ++failed_commands;
  last_failure = error.message;
}

void Nic::Impl::command(const Command& request, Actions& out) {
  const Put* const put = std::get_if<Put>(&request.body);
  if (put != nullptr && !request.trigger && request.token == 0) {  // the most common command
    return this->put(*put, out);
  }
  Result<uint64_t> answer = uint64_t{0};
  if (request.trigger) {
    if (const Status registered = wait_for_counter(request); !registered) answer = registered.error();
  } else {
    answer = execute(request.body, out);
  }
  if (!answer) abandon(request.body);
  if (answer && answers_later(request, *answer)) return;
  if (request.token != 0) {
    out.add<Answer>(request.token, std::move(answer));
  } else if (!answer) {
    note_failure(answer.error());
  }
}

// True if the answer comes later: disabling a portal table entry waits for the end of its messages.
bool Nic::Impl::answers_later(const Command& request, uint64_t answer) {
  const auto* change = std::get_if<PortalEnable>(&request.body);
  if (change == nullptr || change->enabled || request.trigger || request.token == 0) return false;
  return portals.answer_when_empty(change->portal, {request.token, answer});
}

// Does what a Command with this put, without token and trigger, does.
void Nic::Impl::put(const Put& put, Actions& out) {
  if (const Status valid = initiator.check(put); !valid) {
    note_failure(valid.error());
    if (put.descriptor) put.descriptor->end();
    return;
  }
  initiator.put(put, out);
}

Status Nic::Impl::wait_for_counter(const Command& request) {
  SPL_TRY(triggers.may_wait(request));
  if (const Put* put = std::get_if<Put>(&request.body)) SPL_TRY(initiator.check(*put));
  if (const ProcessPut* put = std::get_if<ProcessPut>(&request.body)) SPL_TRY(initiator.check(*put));
  if (const Get* get = std::get_if<Get>(&request.body)) SPL_TRY(initiator.check(*get));
  if (const Atomic* atomic = std::get_if<Atomic>(&request.body)) SPL_TRY(initiator.check(*atomic));
  SPL_TRY(close_counting(request.trigger->counter));
  triggers.wait(request);
  return {};
}

// From now on counting does more than to add, so peers may not count.
Status Nic::Impl::close_counting(CounterId counter) {
  if (portals.close_counting(counter)) return {};
  return fail(Code::exhausted, "counter ", counter,
              ": a peer that is stopped uses one of its entries and does not leave");
}

// Runs one fired command.
void Nic::Impl::run_fired(Actions& out) {
  if (!triggers.has_fired()) return;
  const uint32_t slot = triggers.take_fired();
  const Command& request = triggers.command(slot);
  if (request.trigger->every > 0) for_each_descriptor(request.body, [](Descriptor& descriptor) { descriptor.begin(); });
  const Result<uint64_t> result = execute(request.body, out);
  if (!result) {
    note_failure(result.error());
    abandon(request.body);
  }
  triggers.finish_run(slot);
}

Result<uint64_t> Nic::Impl::execute(const CommandBody& request, Actions& out) {
  return std::visit(
      [&](const auto& body) -> Result<uint64_t> {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, QueueAlloc>) {
          SPL_TRY(queues.alloc(body));
        } else if constexpr (std::is_same_v<Body, QueueFree>) {
          SPL_TRY(queues.free(body.queue));
          portals.forget_queue(body.queue);
        } else if constexpr (std::is_same_v<Body, CounterAlloc>) {
          SPL_TRY(triggers.alloc(body));
          // The host may have kept the last value of a counter that had this id before.
          triggers.set(body.counter, {}, out);
        } else if constexpr (std::is_same_v<Body, CounterCancel>) {
          SPL_TRY(triggers.cancel(body.counter));
        } else if constexpr (std::is_same_v<Body, CounterAutoReset>) {
          SPL_TRY(close_counting(body.counter));
          SPL_TRY(triggers.auto_reset(body));
        } else if constexpr (std::is_same_v<Body, CounterFree>) {
          SPL_TRY(triggers.free(body.counter));
        } else if constexpr (std::is_same_v<Body, CounterInc>) {
          SPL_TRY(triggers.check(body.counter));
          triggers.count(body.counter, body.by, out);
          return triggers.value(body.counter).success;
        } else if constexpr (std::is_same_v<Body, CounterSet>) {
          SPL_TRY(triggers.check(body.counter));
          triggers.set(body.counter, body.to, out);
        } else if constexpr (std::is_same_v<Body, PortalAlloc>) {
          SPL_TRY(portals.alloc(body));
        } else if constexpr (std::is_same_v<Body, PortalFree>) {
          SPL_TRY(portals.free(body.portal, out));
        } else if constexpr (std::is_same_v<Body, PortalEnable>) {
          return portals.enable(body);
        } else if constexpr (std::is_same_v<Body, TableSetup>) {
          SPL_TRY(portals.setup(body));
          begun_at_setup[body.table] = initiator.messages_begun();
        } else if constexpr (std::is_same_v<Body, RefusalsRead>) {
          return portals.read_refusals(body);
        } else if constexpr (std::is_same_v<Body, Append>) {
          SPL_TRY(portals.append(body, out));
        } else if constexpr (std::is_same_v<Body, Unlink>) {
          SPL_ASSIGN(const UnlinkResult result, portals.unlink(body.id));
          return static_cast<uint64_t>(result);
        } else if constexpr (std::is_same_v<Body, Search>) {
          return portals.search(body, out);
        } else if constexpr (std::is_same_v<Body, MemoryAlloc>) {
          return contexts.memory().allocate(body.bytes, body.align);
        } else if constexpr (std::is_same_v<Body, MemoryFree>) {
          SPL_TRY(contexts.free_memory(body.offset));
        } else if constexpr (std::is_same_v<Body, MemoryWrite>) {
          if (!contexts.memory().holds(body.offset, body.bytes.size())) {
            return fail(Code::invalid, "NIC memory: a write of ", body.bytes.size(), " B at offset ", body.offset,
                        " is not inside one allocated block");
          }
          out.add<WriteNicMemory>(body.offset, body.bytes);
        } else if constexpr (std::is_same_v<Body, ContextCreate>) {
          SPL_TRY(contexts.create(body, config.hpus, config.payload_bytes));
          const auto& policy = body.context.blocked_round_robin;
          scheduler.add(body.id, body.context.hpus, policy ? policy->vhpus : 0);
        } else if constexpr (std::is_same_v<Body, ContextFree>) {
          SPL_TRY(contexts.free(body.id));
          scheduler.remove(body.id);
        } else if constexpr (std::is_same_v<Body, ContextActivate>) {
          SPL_TRY(contexts.activate(body.id));
          portals.activate(body.id, out);
        } else if constexpr (std::is_same_v<Body, TelemetryRead>) {
          return contexts.read(body);
        } else if constexpr (std::is_same_v<Body, Invoke>) {
          SPL_TRY(invoke(body, out));
        } else if constexpr (std::is_same_v<Body, StreamStart>) {
          SPL_TRY(initiator.stream(body, out));
        } else if constexpr (std::is_same_v<Body, StreamAppend>) {
          SPL_TRY(initiator.stream(body, out));
        } else if constexpr (std::is_same_v<Body, ProcessPut>) {
          SPL_TRY(initiator.check(body));
          initiator.process_put(body, out);
        } else if constexpr (std::is_same_v<Body, Get>) {
          SPL_TRY(initiator.check(body));
          initiator.get(body, out);
        } else if constexpr (std::is_same_v<Body, Atomic>) {
          SPL_TRY(initiator.check(body));
          initiator.atomic(body, out);
        } else {
          static_assert(std::is_same_v<Body, Put>, "every command has its branch");
          SPL_TRY(initiator.check(body));
          initiator.put(body, out);
        }
        return uint64_t{0};
      },
      request);
}

}  // namespace spinloom::nic
