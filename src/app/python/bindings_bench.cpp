// spinloom._core: one row of the layout bench, as an object that measures.
#include <nanobind/stl/vector.h>

#include "app/measure/layout_bench.hpp"
#include "app/python/bindings_support.hpp"

namespace spinloom::app {
namespace {

class PythonBench {
 public:
  PythonBench(const std::string& type, const std::string& to, const std::string& hand_library,
              const std::string& struct_loop)
      : bench_(unwrap(without_lock([&] { return LayoutBench::create(type, to, hand_library, struct_loop); }))) {}

  bool has(const std::string& operation, const std::string& way) const {
    return bench_.has(unwrap(bench_operation_named(operation)), unwrap(bench_way_named(way)));
  }
  void check(const std::string& operation, const std::string& way) {
    const BenchOperation bench_operation = unwrap(bench_operation_named(operation));
    const BenchWay bench_way = unwrap(bench_way_named(way));
    unwrap(without_lock([&] { return bench_.check(bench_operation, bench_way); }));
  }
  std::vector<double> time(const std::string& operation, const std::string& way, int repetitions, int64_t calls) {
    const BenchOperation bench_operation = unwrap(bench_operation_named(operation));
    const BenchWay bench_way = unwrap(bench_way_named(way));
    return unwrap(without_lock([&] { return bench_.time(bench_operation, bench_way, repetitions, calls); }));
  }
  uint64_t hash(const std::string& operation) {
    const BenchOperation bench_operation = unwrap(bench_operation_named(operation));
    return unwrap(without_lock([&] { return bench_.hash(bench_operation); }));
  }
  void write_program(const std::string& path) const { unwrap(bench_.write_program(path)); }
  int64_t lines(const std::string& operation) const { return bench_.lines(unwrap(bench_operation_named(operation))); }
  std::string kernel(const std::string& operation) const {
    return bench_.kernel(unwrap(bench_operation_named(operation)));
  }
  int64_t bytes() const { return bench_.bytes(); }
  int64_t block_bytes_min() const { return bench_.block_bytes_min(); }

 private:
  LayoutBench bench_;
};

}  // namespace

void bind_bench(nb::module_& module) {
  nb::class_<PythonBench>(module, "LayoutBench", "One row of the layout bench; times are host times in ns.")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::string&>(), nb::arg("type"),
           nb::arg("to"), nb::arg("hand_library"), nb::arg("struct_loop") = "")
      .def("has", &PythonBench::has, nb::arg("operation"), nb::arg("way"))
      .def("check", &PythonBench::check, nb::arg("operation"), nb::arg("way"), "Raises unless the bytes are right.")
      .def("time", &PythonBench::time, nb::arg("operation"), nb::arg("way"), nb::arg("repetitions"), nb::arg("calls"))
      .def("hash", &PythonBench::hash, nb::arg("operation"), "What a peer's bytes must hash to.")
      .def("write_program", &PythonBench::write_program, nb::arg("path"))
      .def("lines", &PythonBench::lines, nb::arg("operation"))
      .def("kernel", &PythonBench::kernel, nb::arg("operation"))
      .def_prop_ro("bytes", &PythonBench::bytes)
      .def_prop_ro("block_bytes_min", &PythonBench::block_bytes_min);
}

}  // namespace spinloom::app
