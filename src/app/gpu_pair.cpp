#include "app/gpu_pair.hpp"

#include <utility>

#include "app/bindings_support.hpp"
#include "app/gpu_bound.hpp"

namespace spinloom::app {
namespace {

constexpr int signals_every_ms = 50;

}  // namespace

GpuPair::GpuPair(int socket, int device, std::string way, int patience_ms) {
  if (emulated()) {
    throw Raised{fail(Code::unsupported, "SPINLOOM_GPU=shim has no device that two processes could share")};
  }
  gpu::PairOptions options;
  options.way = std::move(way);
  options.patience_ms = patience_ms;
  shared_ = std::make_shared<GpuPairShared>(unwrap(without_lock([&]() -> Result<gpu::Pair> {
    if (!gpu::available()) return fail(Code::environment, "there is no GPU to pair: ", gpu::why_not());
    SPL_ASSIGN(const gpu::Device found, gpu::Device::at(device));
    SPL_ASSIGN(std::shared_ptr<gpu::PairChannel> channel, gpu::SocketChannel::make(socket));
    return gpu::Pair::connect(found, std::move(channel), options);
  })));
}

GpuPairMove GpuPair::begin(bool sends, const layout::Committed& layout, nb::object array, int64_t count, int64_t offset,
                           bool as_memory, uint64_t stream) {
  const GpuEnd end =
      layout_end(array, !sends, sends ? "the source" : "the destination", layout, count, offset, as_memory);
  if (!sends) unwrap(layout.check_receive(count));
  gpu::PairMove move = unwrap(without_lock([&] {
    const std::lock_guard lock(shared_->one_at_a_time);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's handle
    auto* const on = reinterpret_cast<gpu::Stream>(stream);
    return sends ? shared_->pair.begin_send(end.side, end.base, on)
                 : shared_->pair.begin_receive(end.side, end.base, on);
  }));
  return {shared_, std::move(move), std::move(array)};
}

bool GpuPairMove::test() {
  return unwrap(without_lock([&] {
    const std::lock_guard lock(shared_->one_at_a_time);
    return move_.test();
  }));
}

void GpuPairMove::wait() {
  while (true) {
    const bool is_over = unwrap(without_lock([&] {
      const std::lock_guard lock(shared_->one_at_a_time);
      return move_.wait_for(signals_every_ms);
    }));
    if (is_over) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace spinloom::app
