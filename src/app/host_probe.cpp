#include "app/host_probe.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "app/destination.hpp"
#include "layout/text.hpp"
#include "offload/unpack.hpp"
#include "sim/host_model.hpp"

namespace spinloom::app {
namespace {

constexpr int64_t line_bytes = 64;

void flush(const uint8_t* bytes, size_t length) {
#if defined(__x86_64__)
  for (size_t at = 0; at < length; at += line_bytes) _mm_clflush(bytes + at);
  if (length > 0) _mm_clflush(bytes + length - 1);
  _mm_mfence();
#else
  static std::vector<uint8_t> other(size_t{256} << 20);
  for (size_t at = 0; at < other.size(); at += line_bytes) ++other[at];
  (void)bytes;
  (void)length;
#endif
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_ns(int repetitions, const std::function<void()>& prepare, const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    prepare();
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count());
  }
  return median(times);
}

Result<offload::Message> message_of(const std::string& type_text, int64_t count) {
  SPL_ASSIGN(const layout::Type type, layout::parse(type_text));
  return offload::make_message(type, count);
}

}  // namespace

Result<HostMeasure> measure_unpack(const std::string& type_text, int64_t count, int repetitions) {
  if (repetitions < 1) return fail(Code::invalid, "repetitions is ", repetitions, ", it must be at least 1");
  SPL_ASSIGN(const offload::Message message, message_of(type_text, count));
  if (message.bytes == 0) return fail(Code::unsupported, "a message of zero bytes takes no time to unpack");
  SPL_ASSIGN(Destination destination, Destination::create(message, 1));
  const std::vector<uint8_t> packed = random_bytes(1, "app.message", static_cast<size_t>(message.bytes));
  uint8_t* const first = destination.base() + message.reach.first;
  HostMeasure measure;
  measure.bytes = message.bytes;
  const auto cold = [&] {
    flush(packed.data(), packed.size());
    flush(destination.bytes().data(), destination.bytes().size());
  };
  measure.cold_ns = median_ns(repetitions, cold, [&] {
    measure.blocks = static_cast<int64_t>(offload::unpack(message, packed.data(), first));
  });
  SPL_TRY(destination.check(message, packed));
  return measure;
}

Result<HostRates> measure_rates(int repetitions) {
  if (repetitions < 1) return fail(Code::invalid, "repetitions is ", repetitions, ", it must be at least 1");
  HostRates rates;
  // Plain stores in pieces, as an unpack makes them: one large memcpy would bypass the cache.
  SPL_ASSIGN(const offload::Message pieces, message_of("hvector(2048, 1024, 2048B, byte)", 1));
  const std::vector<uint8_t> from(static_cast<size_t>(pieces.bytes), 1);
  std::vector<uint8_t> to(static_cast<size_t>(pieces.reach.last));
  const double copy_ns = median_ns(
      repetitions,
      [&] {
        flush(from.data(), from.size());
        flush(to.data(), to.size());
      },
      [&] { offload::unpack(pieces, from.data(), to.data()); });
  constexpr double moves_a_byte = 3;  // read, fetched for writing, written back
  rates.line_bytes_per_ns = moves_a_byte * static_cast<double>(pieces.bytes) / copy_ns;

  constexpr int64_t blocks = 512;
  constexpr int inner = 64;
  SPL_ASSIGN(const offload::Message message, message_of("hvector(512, 16, 32B, byte)", 1));
  std::vector<uint8_t> packed(static_cast<size_t>(message.bytes), 1);
  std::vector<uint8_t> array(static_cast<size_t>(message.reach.last));
  const double warm_ns = median_ns(
      repetitions, [] {},
      [&] {
        for (int i = 0; i < inner; ++i) {
          offload::unpack(message, packed.data(), array.data());
          asm volatile("" ::"r"(array.data()) : "memory");
        }
      });
  rates.block_ns = warm_ns / inner / blocks;
  return rates;
}

Result<HostPrediction> predict_unpack(const sim::Profile& profile, const std::string& type_text, int64_t count) {
  SPL_ASSIGN(const offload::Message message, message_of(type_text, count));
  uint64_t blocks = 0;
  offload::for_each_piece(message.blob, message.bytes, [&](int64_t, uint64_t, uint64_t) { ++blocks; });
  const portals::HostWork work = offload::unpack_work(message, portals::HostWork::Kind::unpack_mpitypes, blocks);
  const sim::HostCost cost = sim::host_cost(profile, work);
  HostPrediction prediction;
  prediction.lines = static_cast<int64_t>(cost.line_fetches + cost.line_writebacks);
  prediction.blocks = static_cast<int64_t>(blocks);
  prediction.line_bytes = profile.host.line;
  prediction.time_ps = cost.total().ps;
  return prediction;
}

}  // namespace spinloom::app
