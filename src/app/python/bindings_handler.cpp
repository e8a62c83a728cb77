// spinloom._core: for authors of handlers, the contents of an image, and a run of it.

#include <algorithm>
#include <optional>
#include <sstream>

#include "app/python/bindings_setup.hpp"
#include "app/studies/handler_run.hpp"
#include "nic/hpu/disassemble.hpp"

namespace spinloom::app {
namespace {

std::vector<uint8_t> bytes_from(const nb::dict& config, const char* key) {
  const nb::object value = get(config, key);
  if (!nb::isinstance<nb::bytes>(value)) throw Raised{fail(Code::invalid, "config: \"", key, "\" is not bytes")};
  const auto bytes = nb::cast<nb::bytes>(value);
  const auto* first = reinterpret_cast<const uint8_t*>(bytes.c_str());
  return {first, first + bytes.size()};
}

HandlerConfig handler_config_of(const nb::dict& config) {
  HandlerConfig out;
  static_cast<Setup&>(out) = setup_of(config);
  out.image_name = get_as<std::string>(config, "image");
  out.message = bytes_from(config, "message");
  out.messages = get_as<uint32_t>(config, "messages");
  out.hdr_data = get_as<uint64_t>(config, "hdr_data");
  out.user_header_bytes = get_as<uint32_t>(config, "user_header_bytes");
  out.ask_ack = get_as<bool>(config, "ack");
  out.budget_cycles = get_as<uint64_t>(config, "budget_cycles");
  out.constants = bytes_from(config, "constants");
  out.state = bytes_from(config, "state");
  out.entry = bytes_from(config, "entry");
  out.handler_memory = bytes_from(config, "handler_memory");
  out.reply = bytes_from(config, "reply");
  out.trace = get_as<bool>(config, "trace");
  out.profile_instructions = get_as<bool>(config, "profile_instructions");
  return out;
}

const char* name_of(nic::HandlerKind kind) {
  switch (kind) {
    case nic::HandlerKind::header: return "header";
    case nic::HandlerKind::payload: return "payload";
    case nic::HandlerKind::completion: return "completion";
    case nic::HandlerKind::initialise: return "initialise";
    case nic::HandlerKind::mail: return "mail";
  }
  return "unknown";
}

const char* name_of(nic::HandlerEnd end) {
  switch (end) {
    case nic::HandlerEnd::returned: return "returned";
    case nic::HandlerEnd::fault: return "fault";
    case nic::HandlerEnd::segv: return "access violation";
    case nic::HandlerEnd::budget: return "budget";
  }
  return "unknown";
}

nb::list events_of(const HandlerResult& result) {
  nb::list events;
  for (const HostEvent& host_event : result.events) {
    nb::dict event;
    event["time_ps"] = host_event.time_ps;
    event["rank"] = host_event.rank;
    event["kind"] = name_of(host_event.event.kind);
    event["fail"] = nic::name_of(host_event.event.fail);
    event["ok"] = host_event.event.fail == nic::Fail::ok;
    event["bytes"] = host_event.event.manipulated_bytes;
    event["dropped_bytes"] = host_event.event.dropped_bytes;
    event["match_bits"] = host_event.event.match_bits;
    event["hdr_data"] = host_event.event.hdr_data;
    events.append(event);
  }
  return events;
}

nb::dict statistics_of(const simulated::HandlerStatistics& statistics) {
  nb::dict out;
  out["handlers"] = statistics.handlers;
  out["cycles"] = statistics.cycles;
  out["cycles_min"] = statistics.cycles_min;
  out["cycles_max"] = statistics.cycles_max;
  out["instructions"] = statistics.instructions;
  out["calls"] = statistics.calls;
  out["loads"] = statistics.loads;
  out["stores"] = statistics.stores;
  out["atomics"] = statistics.atomics;
  out["mispredicts"] = statistics.mispredicts;
  nb::dict stalls;
  stalls["front end"] = statistics.stalls.front_end;
  stalls["operand"] = statistics.stalls.operand;
  stalls["unit"] = statistics.stalls.unit;
  stalls["window"] = statistics.stalls.window;
  stalls["device"] = statistics.stalls.device;
  stalls["latency"] = statistics.stalls.latency;
  out["stalls"] = stalls;
  return out;
}

nb::list lines_of(const std::vector<simulated::HandlerLog::Line>& lines, Time start) {
  nb::list out;
  for (const simulated::HandlerLog::Line& line : lines) {
    const nb::bytes line_text(line.text.data(), line.text.size());  // bytes, because a handler's text may be anything
    out.append(nb::make_tuple((line.time - start).ps, line.hpu, name_of(line.kind), line_text, line.value));
  }
  return out;
}

void add_log(const HandlerResult& result, nb::dict& out) {
  nb::dict calls;
  for (const auto& [number, count] : result.log.calls()) calls[nb::int_(number)] = count;
  out["calls"] = calls;
  nb::list endings;
  for (const auto& [ending, count] : result.log.endings()) {
    const auto& [kind, end, code] = ending;
    endings.append(nb::make_tuple(name_of(kind), name_of(end), code, count));
  }
  out["endings"] = endings;
  out["debug"] = lines_of(result.log.debug(), result.start);
  out["debug_dropped"] = result.log.debug_dropped();
  out["troubles"] = lines_of(result.log.troubles(), result.start);
  out["troubles_dropped"] = result.log.troubles_dropped();
}

void add_profile(const HandlerResult& result, nb::dict& out) {
  nb::dict functions;
  for (const auto& [name, cycles] : result.function_cycles) functions[python_string(name)] = cycles;
  out["function_cycles"] = functions;
  nb::dict instructions;
  nb::dict traffic;
  for (const hpu::InstructionProfile& image : result.instructions) {
    for (size_t slot = 0; slot < image.costs().size(); ++slot) {
      const auto& spent = image.costs()[slot];
      if (spent.executed == 0 && spent.cycles == 0) continue;
      instructions[nb::int_(image.base() + 2 * slot)] = nb::make_tuple(spent.executed, spent.cycles);
    }
    for (size_t window = 0; window < image.traffic().size(); ++window) {
      const auto& used = image.traffic()[window];
      if (used.loads + used.stores == 0) continue;
      traffic[nb::int_(window << 28)] = nb::make_tuple(used.loads, used.load_bytes, used.stores, used.store_bytes);
    }
  }
  out["instructions"] = instructions;
  out["traffic"] = traffic;
}

// Runs handlers. Ctrl-C ends the run: the exception then has the results until there as its attribute `result`.
nb::dict run(const nb::dict& settings) {
  const HandlerConfig config = handler_config_of(settings);
  std::optional<nb::python_error> stopped;
  const auto go_on = [&] {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) stopped.emplace();
    return !stopped;
  };
  Result<HandlerResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return run_handler(config, go_on);
  }();
  const HandlerResult result = unwrap(std::move(outcome));
  nb::dict out;
  out["time_ps"] = result.time_ps;
  out["first_byte_ps"] = result.first_byte_ps;
  out["last_handler_ps"] = result.last_handler_ps;
  out["data_landed_ps"] = result.data_landed_ps;
  out["events"] = events_of(result);
  out["counter"] = nb::make_tuple(result.counter.success, result.counter.failure);
  out["state"] = bytes_of(result.state);
  out["entry"] = bytes_of(result.entry);
  out["handler_memory"] = bytes_of(result.handler_memory);
  out["reply"] = bytes_of(result.reply);
  out["packets"] = result.packets;
  out["dma_writes"] = result.dma_writes;
  out["dma_bytes"] = result.dma_bytes;
  nb::dict handlers;
  for (const auto kind : {nic::HandlerKind::header, nic::HandlerKind::payload, nic::HandlerKind::completion}) {
    handlers[name_of(kind)] = statistics_of(result.handlers[static_cast<size_t>(kind)]);
  }
  out["handlers"] = handlers;
  add_log(result, out);
  if (config.trace) add_trace(out, result.trace, result.start.ps);
  if (config.profile_instructions) add_profile(result, out);
  if (stopped) {
    nb::setattr(stopped->value(), "result", out);
    throw nb::python_error(*stopped);
  }
  return out;
}

std::span<const uint8_t> span_of(const nb::bytes& file) {
  return {reinterpret_cast<const uint8_t*>(file.c_str()), file.size()};
}

hpu::Image image_from(const nb::bytes& file) { return unwrap(hpu::load_elf(span_of(file))); }

nb::dict describe_image(const nb::bytes& file) {
  const hpu::Image image = image_from(file);
  nb::dict symbols;
  for (const auto& [name, address] : image.symbols()) symbols[python_string(name)] = address;
  nb::dict out;
  out["symbols"] = symbols;
  out["base"] = image.base();
  out["bytes"] = image.bytes().size();
  return out;
}

// Returns (address, bytes, bits, text) of each instruction, and of each word or halfword of constants. Without sections
// all that may be executed counts as instructions.
nb::list disassemble_image(const nb::bytes& file) {
  const hpu::Image image = image_from(file);
  const std::vector<hpu::AddressRange> code = unwrap(hpu::code_sections(span_of(file)));
  const auto is_code = [&](uint32_t slot) {
    if (image.ops()[slot].code == hpu::OpCode::no_execute) return false;
    const uint32_t pc = image.base() + 2 * slot;
    return code.empty() ||
           std::ranges::any_of(code, [&](const auto& range) { return pc >= range.begin && pc < range.end; });
  };
  const auto halfword = [&](uint32_t slot) {
    return image.bytes()[2 * size_t{slot}] | uint32_t{image.bytes()[2 * size_t{slot} + 1]} << 8;
  };
  nb::list lines;
  for (uint32_t slot = 0; slot < image.slot_count();) {
    const hpu::Op& op = image.ops()[slot];
    const uint32_t pc = image.base() + 2 * slot;
    if (is_code(slot)) {
      lines.append(nb::make_tuple(pc, 2 * op.slots, op.raw, hpu::disassemble(op, pc)));
      slot += op.slots;
      continue;
    }
    const bool is_word = pc % 4 == 0 && slot + 1 < image.slot_count() && !is_code(slot + 1);
    const uint32_t bits = halfword(slot) | (is_word ? halfword(slot + 1) << 16 : 0);
    std::ostringstream text;
    text << (is_word ? ".word" : ".half") << " 0x" << std::hex << bits;
    lines.append(nb::make_tuple(pc, is_word ? 4 : 2, bits, text.str()));
    slot += is_word ? 2 : 1;
  }
  return lines;
}

}  // namespace

void bind_handler(nb::module_& module) {
  module.def("run_handler", &run, nb::arg("config"), "Messages to an entry with handlers, and all that can be seen.");
  module.def("describe_image", &describe_image, nb::arg("elf"), "Symbols and size of a handler image.");
  module.def("disassemble_image", &disassemble_image, nb::arg("elf"), "A handler image's code, line by line.");
}

}  // namespace spinloom::app
