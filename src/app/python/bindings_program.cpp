// spinloom._core: a program's context on a live Ethernet NIC of another process.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <optional>

#include "app/python/bindings_support.hpp"
#include "ethernet/host/program.hpp"
#include "spinloom/ethernet.h"

namespace spinloom::app {
namespace {

std::span<uint8_t> part_of(std::span<uint8_t> memory, uint64_t offset, uint64_t bytes) {
  if (offset > memory.size() || bytes > memory.size() - offset) {
    unwrap(Status(fail(Code::invalid, bytes, " B at ", offset, " of memory of ", memory.size(), " B")));
  }
  return memory.subspan(offset, bytes);
}

void write_part(std::span<uint8_t> memory, uint64_t offset, const nb::bytes& bytes) {
  std::memcpy(part_of(memory, offset, bytes.size()).data(), bytes.c_str(), bytes.size());
}

nb::bytes read_part(std::span<uint8_t> memory, uint64_t offset, uint64_t bytes) {
  const std::span<uint8_t> bytes_read = part_of(memory, offset, bytes);
  return nb::bytes(bytes_read.data(), bytes_read.size());
}

class PythonProgram {
 public:
  PythonProgram(const std::string& nic, const std::string& handlers, uint64_t host_bytes, uint64_t state_bytes,
                uint64_t constants_bytes) {
    host::Request request;
    request.kind = host::RequestKind::install;
    request.context = SPL_ETH_ANY_CONTEXT;
    request.host_bytes = host_bytes;
    request.state_bytes = state_bytes;
    request.constants_bytes = constants_bytes;
    if (handlers.size() >= request.handlers.size()) {
      unwrap(Status(fail(Code::invalid, "the path of the handlers is too long: ", handlers)));
    }
    handlers.copy(request.handlers.data(), handlers.size());
    program_ = unwrap(host::Program::connect(nic, request));
  }

  void write_constants(uint64_t offset, const nb::bytes& bytes) { write_part(program().constants(), offset, bytes); }
  void write_state(uint64_t offset, const nb::bytes& bytes) { write_part(program().state(), offset, bytes); }
  nb::bytes state(uint64_t offset, uint64_t bytes) { return read_part(program().state(), offset, bytes); }
  nb::bytes host_memory(uint64_t offset, uint64_t bytes) { return read_part(program().host_memory(), offset, bytes); }

  // Returns the descriptor of the host memory, which is open as long as this program. A process that has mapped the
  // memory keeps it for longer.
  [[nodiscard]] int host_descriptor() { return program().host_descriptor(); }

  // Activates the context for UDP frames to this port. With `slmp`, the frames that end messages of SLMP are known as
  // last ones.
  void activate(uint16_t port, bool slmp) {
    host::Request request;
    request.kind = host::RequestKind::activate;
    request.rules = slmp ? spl_eth_rules_slmp(port) : spl_eth_rules_udp(port);
    (void)unwrap(without_lock([&] { return program().ask(request); }));
  }
  // Returns the next notice as (value, argument), or None if none comes in time.
  std::optional<std::tuple<uint32_t, uint64_t>> next_notice(double seconds) {
    const auto patience = std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
    const auto notice = without_lock([&] { return program().next_notice(patience); });
    if (!notice) return std::nullopt;
    return std::tuple{notice->value, notice->argument};
  }
  // Asks the NIC, and throws if it is not there.
  void check() {
    (void)unwrap(without_lock([&] { return program().ask(host::Request{}); }));
  }
  void close() { program_.reset(); }

 private:
  [[nodiscard]] host::Program& program() {
    if (program_ == nullptr) unwrap(Status(fail(Code::invalid, "this program has left its NIC")));
    return *program_;
  }
  std::unique_ptr<host::Program> program_;
};

}  // namespace

void bind_program(nb::module_& module) {
  nb::class_<PythonProgram>(module, "NicProgram", "A context on a live Ethernet NIC of another process.")
      .def(nb::init<const std::string&, const std::string&, uint64_t, uint64_t, uint64_t>(), nb::arg("nic"),
           nb::arg("handlers"), nb::arg("host_bytes"), nb::arg("state_bytes"), nb::arg("constants_bytes"))
      .def("write_constants", &PythonProgram::write_constants, nb::arg("offset"), nb::arg("bytes"))
      .def("write_state", &PythonProgram::write_state, nb::arg("offset"), nb::arg("bytes"))
      .def("state", &PythonProgram::state, nb::arg("offset"), nb::arg("bytes"))
      .def("host_memory", &PythonProgram::host_memory, nb::arg("offset"), nb::arg("bytes"))
      .def("host_descriptor", &PythonProgram::host_descriptor)
      .def("activate", &PythonProgram::activate, nb::arg("port"), nb::arg("slmp"))
      .def("next_notice", &PythonProgram::next_notice, nb::arg("seconds"))
      .def("check", &PythonProgram::check)
      .def("close", &PythonProgram::close);
}

}  // namespace spinloom::app
