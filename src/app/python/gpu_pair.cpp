#include "app/python/gpu_pair.hpp"

#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "app/python/bindings_support.hpp"
#include "app/python/gpu_bound.hpp"

namespace spinloom::app {
namespace {

constexpr int signals_every_ms = 50;

class PythonChannel : public gpu::PairChannel {
 public:
  explicit PythonChannel(nb::object channel) : channel_(std::move(channel)) {}
  ~PythonChannel() override {
    const nb::gil_scoped_acquire lock;
    channel_.reset();
  }

  Status send(std::span<const std::byte> message) override {
    return guarded([&]() -> Status {
      channel_.attr("send")(nb::bytes(message.data(), message.size()));
      return {};
    });
  }
  Result<std::optional<gpu::PairMessage>> receive(int patience_ms) override {
    return guarded([&]() -> Result<std::optional<gpu::PairMessage>> {
      const nb::object message = channel_.attr("receive")(patience_ms);
      if (message.is_none()) return std::optional<gpu::PairMessage>();
      const auto bytes = nb::cast<nb::bytes>(message);
      const auto* const first = static_cast<const std::byte*>(bytes.data());
      return std::optional<gpu::PairMessage>(std::in_place, first, first + bytes.size());
    });
  }

 private:
  template <class Call>
  static auto guarded(const Call& call) -> decltype(call()) {
    const nb::gil_scoped_acquire lock;
    try {
      return call();
    } catch (const std::exception& error) {
      return fail(Code::environment, "the channel of the pair broke: ", error.what());
    }
  }

  nb::object channel_;
};

}  // namespace

GpuPair::GpuPair(nb::object connection, int device, std::string way, int patience_ms) {
  if (emulated()) {
    throw Raised{fail(Code::unsupported, "SPINLOOM_GPU=shim has no device that two processes could share")};
  }
  gpu::PairOptions options;
  options.way = std::move(way);
  options.patience_ms = patience_ms;
  const bool is_socket = nb::isinstance<nb::int_>(connection);
  const int socket = is_socket ? nb::cast<int>(connection) : -1;
  const std::shared_ptr<gpu::PairChannel> python_channel =
      is_socket ? nullptr : std::make_shared<PythonChannel>(std::move(connection));
  shared_ = std::make_shared<GpuPairShared>(unwrap(without_lock([&]() -> Result<gpu::Pair> {
    if (!gpu::available()) return fail(Code::environment, "there is no GPU to pair: ", gpu::unavailable_reason());
    SPL_ASSIGN(const gpu::Device gpu_device, gpu::Device::at(device));
    std::shared_ptr<gpu::PairChannel> channel = python_channel;
    if (is_socket) {
      SPL_ASSIGN(channel, gpu::SocketChannel::make(socket));
    }
    return gpu::Pair::connect(gpu_device, std::move(channel), options);
  })));
}

GpuPairMove GpuPair::begin(bool sends, const layout::Committed& layout, nb::object array, int64_t count, int64_t offset,
                           bool as_memory, uint64_t stream) {
  const GpuEnd end =
      layout_end(array, !sends, sends ? "the source" : "the destination", layout, count, offset, as_memory);
  if (!sends) unwrap(layout.check_receive(count));
  gpu::PairMove move = unwrap(without_lock([&] {
    const std::lock_guard lock(shared_->mutex);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's handle
    auto* const gpu_stream = reinterpret_cast<gpu::Stream>(stream);
    return sends ? shared_->pair.begin_send(end.side, end.base, gpu_stream)
                 : shared_->pair.begin_receive(end.side, end.base, gpu_stream);
  }));
  return {shared_, std::move(move), std::move(array)};
}

bool GpuPairMove::test() {
  return unwrap(without_lock([&] {
    const std::lock_guard lock(shared_->mutex);
    return move_.test();
  }));
}

void GpuPairMove::wait() {
  while (true) {
    const bool is_done = unwrap(without_lock([&] {
      const std::lock_guard lock(shared_->mutex);
      return move_.wait_for(signals_every_ms);
    }));
    if (is_done) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace spinloom::app
