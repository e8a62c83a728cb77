#include "app/studies/handler_run.hpp"

#include <algorithm>
#include <utility>

#include "portals/interface/interface.hpp"

namespace spinloom::app {
namespace {

constexpr uint64_t message_bits = 1;
constexpr uint64_t steps_between_questions = 4096;
constexpr uint32_t event_slots = 4096;  // enough, because events are taken as they come

// One rank: a queue for the events of its entry and its puts, a counter, host memory.
struct Rank {
  explicit Rank(simulated::Node& simulated_node) : node(simulated_node), interface(simulated_node) {}

  Status prepare() {
    SPL_ASSIGN(queue, interface.eq_alloc(event_slots));
    SPL_ASSIGN(portal, interface.pt_alloc(queue));
    SPL_ASSIGN(counter, interface.ct_alloc());
    return {};
  }
  [[nodiscard]] nic::Entry entry(std::vector<uint8_t>& memory) const {
    nic::Entry entry;
    entry.start = memory.data();
    entry.length = memory.size();
    entry.match_bits = message_bits;
    entry.counter = counter;
    entry.options.ct_comm = true;
    return entry;
  }

  simulated::Node& node;
  portals::Interface interface;
  nic::QueueId queue;
  nic::PortalIndex portal;
  nic::CounterId counter;
};

class Run {
 public:
  Run(const HandlerConfig& config, const LoadedImages& loaded, simulated::World& world)
      : config_(config), loaded_(loaded), world_(world), sender_(world.node(0)), receiver_(world.node(1)) {}

  Result<HandlerResult> run(const std::function<bool()>& go_on) {
    result_.entry = config_.entry;
    result_.handler_memory = config_.handler_memory;
    result_.reply = config_.reply;
    SPL_TRY(sender_.prepare());
    SPL_TRY(receiver_.prepare());
    SPL_TRY(append());
    world_.drain();
    if (config_.profile_instructions) {
      receiver_.node.profile_functions();
      receiver_.node.profile_instructions();
    }
    if (config_.trace) receiver_.node.record(&result_.trace, nullptr);
    receiver_.node.log_handlers(&result_.log);
    receiver_.node.reset_statistics();
    start_ = result_.start = receiver_.node.now();
    SPL_TRY(put());
    uint64_t steps = 0;
    do {
      take_events(sender_, 0);
      take_events(receiver_, 1);
      SPL_TRY(check_handler_count());
      result_.complete = ++steps % steps_between_questions != 0 || go_on();
    } while (result_.complete && world_.events().step());
    collect();
    return std::move(result_);
  }

 private:
  Status append() {
    nic::Entry answers = sender_.entry(result_.reply);
    answers.ignore_bits = UINT64_MAX;
    SPL_ASSIGN(std::ignore, sender_.interface.me_append(sender_.portal, answers));
    nic::Entry entry = receiver_.entry(result_.entry);
    if (!config_.image_name.empty()) {
      SPL_ASSIGN(entry.context, context());
    }
    SPL_ASSIGN(std::ignore, receiver_.interface.me_append(receiver_.portal, entry));
    return {};
  }

  Result<nic::ContextId> context() {
    const auto found = std::find_if(loaded_.handlers.begin(), loaded_.handlers.end(),
                                    [&](const auto& image) { return image.name == config_.image_name; });
    if (found == loaded_.handlers.end()) return fail(Code::invalid, "there is no handler image ", config_.image_name);
    if (!found->header_entry && !found->payload_entry && !found->completion_entry) {
      return fail(Code::invalid, "handler image ", config_.image_name,
                  " defines none of header_handler, payload_handler, completion_handler");
    }
    nic::Context context;
    context.image = found->index;
    context.header_entry = found->header_entry;
    context.payload_entry = found->payload_entry;
    context.completion_entry = found->completion_entry;
    context.user_header_bytes = config_.user_header_bytes;
    context.budget_cycles = config_.budget_cycles;
    context.handler_host_start = reinterpret_cast<uint64_t>(result_.handler_memory.data());
    context.handler_host_length = result_.handler_memory.size();
    SPL_ASSIGN(context.constants, memory_with(config_.constants));
    SPL_ASSIGN(context.state, memory_with(config_.state));
    state_ = context.state;
    return receiver_.interface.context_create(context);
  }

  Result<nic::MemoryWindow> memory_with(const std::vector<uint8_t>& bytes) {
    nic::MemoryWindow window;
    window.length = bytes.size();
    if (bytes.empty()) return window;
    SPL_ASSIGN(window.offset, receiver_.interface.memory_alloc(window.length));
    SPL_TRY(receiver_.interface.memory_write(window.offset, bytes));
    return window;
  }

  Status put() {
    portals::PutArguments put;
    put.local = config_.message.data();
    put.length = config_.message.size();
    put.target = receiver_.node.rank();
    put.portal = receiver_.portal;
    put.match_bits = message_bits;
    put.hdr_data = config_.hdr_data;
    put.queue = sender_.queue;
    put.event_send_disable = true;
    if (config_.ask_ack) put.ack_request = nic::AckRequest::ack;
    for (uint32_t message = 0; message < config_.messages; ++message) SPL_TRY(sender_.interface.put(put));
    return {};
  }

  // Returns an Error if so many handlers have run that they may go on for ever, as one that puts to its own entry.
  [[nodiscard]] Status check_handler_count() const {
    const uint64_t packets = 2 + config_.message.size() / config_.payload_bytes;
    const uint64_t allowed = limits::handlers_a_packet_max * packets * config_.messages;
    uint64_t ran = 0;
    for (const auto kind : {nic::HandlerKind::header, nic::HandlerKind::payload, nic::HandlerKind::completion}) {
      ran += receiver_.node.hpus().statistics(kind).handlers;
    }
    if (ran <= allowed) return {};
    return fail(Code::stalled, ran, " handlers have run for ", packets * config_.messages,
                " packets and there is no end; does a handler put to its own entry (handlers_a_packet_max)?");
  }

  void take_events(Rank& rank, uint32_t number) {
    while (const auto event = rank.interface.eq_get(rank.queue)) {
      result_.events.push_back({since_start_ps(rank.node.now()), number, *event});
    }
  }

  [[nodiscard]] int64_t since_start_ps(Time time) const { return (time - start_).ps; }

  void collect() {
    uint32_t ended = 0;
    for (const HostEvent& host_event : result_.events) {
      if (host_event.rank != 1 || host_event.event.kind != nic::EventKind::put) continue;
      result_.time_ps = host_event.time_ps;
      ++ended;
    }
    if (ended < config_.messages) result_.time_ps = -1;
    const simulated::NodeStatistics& statistics = receiver_.node.statistics();
    result_.first_byte_ps = statistics.packets > 0 ? since_start_ps(statistics.first_byte) : -1;
    result_.data_landed_ps = since_start_ps(std::max(statistics.data_landed, start_));
    result_.last_handler_ps = since_start_ps(std::max(receiver_.node.hpus().last_end(), start_));
    result_.packets = statistics.packets;
    result_.dma_writes = statistics.dma_writes;
    result_.dma_bytes = statistics.dma_bytes;
    result_.counter = receiver_.interface.ct_get(receiver_.counter);
    for (size_t kind = 0; kind < result_.handlers.size(); ++kind) {
      result_.handlers[kind] = receiver_.node.hpus().statistics(static_cast<nic::HandlerKind>(kind));
    }
    const auto state = receiver_.node.nic_memory().subspan(state_.offset, state_.length);
    result_.state.assign(state.begin(), state.end());
    if (!config_.profile_instructions) return;
    result_.function_cycles = receiver_.node.hpus().function_cycles();
    result_.instructions = receiver_.node.hpus().instructions();
  }

  const HandlerConfig& config_;
  const LoadedImages& loaded_;
  simulated::World& world_;
  Rank sender_;
  Rank receiver_;
  Time start_{};
  nic::MemoryWindow state_;
  HandlerResult result_;
};

}  // namespace

Result<HandlerResult> run_handler(const HandlerConfig& config, const std::function<bool()>& go_on) {
  if (config.messages == 0) return fail(Code::invalid, "a run without a message shows nothing");
  SPL_ASSIGN(const LoadedImages loaded, load_images(config.images));
  SPL_ASSIGN(const auto world, simulated::World::create(config.profile, loaded.images, world_options(config)));
  return Run(config, loaded, *world).run(go_on);
}

}  // namespace spinloom::app
