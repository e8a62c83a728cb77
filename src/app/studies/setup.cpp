#include "app/studies/setup.hpp"

#include <optional>
#include <utility>

namespace spinloom::app {
namespace {

std::optional<uint32_t> entry_of(const hpu::Image& image, const char* symbol) {
  const auto found = image.symbols().find(symbol);
  return found == image.symbols().end() ? std::nullopt : std::optional<uint32_t>(found->second);
}

}  // namespace

Result<LoadedImages> load_images(const std::map<std::string, std::vector<uint8_t>>& files) {
  LoadedImages loaded;
  for (const auto& [name, file] : files) {
    Result<hpu::Image> image = hpu::load_elf(file);
    if (!image) return fail(image.error().code, "handler image ", name, ": ", image.error().message);
    strategies::HandlerImage handler;
    handler.name = name;
    handler.index = static_cast<uint32_t>(loaded.images.size());
    handler.header_entry = entry_of(*image, "header_handler");
    handler.payload_entry = entry_of(*image, "payload_handler");
    handler.completion_entry = entry_of(*image, "completion_handler");
    loaded.handlers.push_back(handler);
    loaded.images.push_back(std::move(*image));
  }
  return loaded;
}

strategies::NicFacts facts_of(const Setup& setup) {
  strategies::NicFacts facts;
  facts.hpus = setup.hpus;
  facts.payload_bytes = setup.payload_bytes;
  facts.state_bytes = static_cast<uint64_t>(setup.profile.memory.state_bytes);
  facts.packet_buffer_bytes = static_cast<uint64_t>(setup.profile.memory.packet_buffer_bytes);
  facts.packet_time = setup.profile.link.byte_time.time_of(Bytes{setup.payload_bytes});
  facts.epsilon_numerator = setup.profile.checkpoint.epsilon.numerator;
  facts.epsilon_denominator = setup.profile.checkpoint.epsilon.denominator;
  facts.iovec_entries = static_cast<uint32_t>(setup.profile.iovec.entries);
  return facts;
}

simulated::WorldOptions world_options(const Setup& setup) {
  simulated::WorldOptions options;
  options.node = {setup.hpus, setup.payload_bytes, setup.slice_cycles};
  options.ordering = setup.ordering;
  return options;
}

void log_event(std::vector<uint8_t>& log, int64_t time_ps, const nic::Event& event) {
  const auto append_word = [&log](uint64_t value) {
    for (unsigned byte = 0; byte < 8; ++byte) log.push_back(static_cast<uint8_t>(value >> (8 * byte)));
  };
  append_word(static_cast<uint64_t>(time_ps));
  append_word(static_cast<uint64_t>(event.kind));
  append_word(static_cast<uint64_t>(event.fail));
  append_word(event.manipulated_bytes);
}

Error explain(const Error& error, const simulated::Node& node) {
  if (error.code != Code::fault || node.handler_trouble().empty()) return error;
  return fail(error.code, error.message, "; the handler ", node.handler_trouble());
}

}  // namespace spinloom::app
