#include "app/measure/host_probe.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "app/measure/destination.hpp"
#include "app/measure/line.hpp"
#include "base/random.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/text.hpp"
#include "portals/strategies/pieces.hpp"
#include "portals/strategies/unpack.hpp"
#include "simulated/node/host_model.hpp"

namespace spinloom::app {
namespace {

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

Result<strategies::Message> message_of(const std::string& type_text, int64_t count) {
  SPL_ASSIGN(const layout::Type type, layout::parse(type_text));
  return strategies::make_message(type, count);
}

}  // namespace

Result<HostMeasure> measure_unpack(const std::string& type_text, int64_t count, int repetitions) {
  if (repetitions < 1) return fail(Code::invalid, "repetitions is ", repetitions, ", it must be at least 1");
  SPL_ASSIGN(const strategies::Message message, message_of(type_text, count));
  if (message.bytes == 0) return fail(Code::unsupported, "a message of zero bytes takes no time to unpack");
  SPL_ASSIGN(Destination destination, Destination::create(message, 1));
  const std::vector<uint8_t> packed = random_bytes(1, "app.message", static_cast<size_t>(message.bytes));
  uint8_t* const first = destination.base() + message.reach.first;
  HostMeasure measure;
  measure.bytes = message.bytes;
  const portals::HostWork::Blocks blocks = strategies::count_blocks(message.blob);
  measure.blocks = static_cast<int64_t>(blocks.in_vectors + blocks.listed);
  const auto flush_all = [&] {
    flush(packed.data(), packed.size());
    flush(destination.bytes().data(), destination.bytes().size());
  };
  measure.cold_ns = median_ns(repetitions, flush_all, [&] { strategies::unpack(message, packed.data(), first); });
  SPL_TRY(destination.check(message, packed));
  return measure;
}

namespace {

enum class UnpackMethod : uint8_t { mpitypes, kernels, walk };

// The median time of an unpack; `is_cold` flushes every line of both sides before each repetition.
Result<double> unpack_ns(const layout::Type& type, int repetitions, bool is_cold,
                         UnpackMethod method = UnpackMethod::mpitypes) {
  SPL_ASSIGN(const strategies::Message message, strategies::make_message(type, 1));
  const std::vector<uint8_t> packed(static_cast<size_t>(message.bytes), 1);
  std::vector<uint8_t> array(static_cast<size_t>(message.reach.last));
  const int calls = is_cold ? 1 : 64;
  const auto prepare = [&] {
    if (!is_cold) return;
    flush(packed.data(), packed.size());
    flush(array.data(), array.size());
  };
  const double ns = median_ns(repetitions, prepare, [&] {
    for (int i = 0; i < calls; ++i) {
      if (method == UnpackMethod::mpitypes) {
        strategies::unpack(message, packed.data(), array.data());
      } else if (method == UnpackMethod::kernels) {
        const Status done = layout::unpack(message.blob, 1, reinterpret_cast<std::byte*>(array.data()), 0,
                                           message.bytes, std::as_bytes(std::span(packed)));
        SPL_ASSERT(done, done.error().message);
      } else {
        uint64_t sum = 0;
        strategies::for_each_piece(message.blob, message.bytes, [&](int64_t offset, uint64_t at, uint64_t bytes) {
          sum += static_cast<uint64_t>(offset) ^ at ^ bytes;
        });
        asm volatile("" ::"r"(sum));
      }
      asm volatile("" ::"r"(array.data()) : "memory");
    }
  });
  return ns / calls;
}

// `blocks` places, `step` bytes apart, in shuffled order.
std::vector<int64_t> shuffled_places(int64_t blocks, int64_t step) {
  std::vector<int64_t> places(static_cast<size_t>(blocks));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i) * step;
  Random(1).shuffle(places);
  return places;
}

}  // namespace

Result<HostRates> measure_rates(int repetitions) {
  if (repetitions < 1) return fail(Code::invalid, "repetitions is ", repetitions, ", it must be at least 1");
  SPL_ASSIGN(const layout::Type byte, layout::primitive("byte"));
  HostRates rates;

  constexpr int64_t warm_blocks = 512;
  constexpr int64_t warm_bytes = 16;
  SPL_ASSIGN(const layout::Type vector, layout::hvector(warm_blocks, warm_bytes, 2 * warm_bytes, byte));
  SPL_ASSIGN(const double vector_ns, unpack_ns(vector, repetitions, false));
  rates.vector_block_ns = vector_ns / warm_blocks;
  SPL_ASSIGN(const layout::Type list,
             layout::hindexed_block(warm_bytes, shuffled_places(warm_blocks, 2 * warm_bytes), byte));
  SPL_ASSIGN(const double list_ns, unpack_ns(list, repetitions, false));
  rates.list_block_ns = list_ns / warm_blocks;
  SPL_ASSIGN(const double best_vector_ns, unpack_ns(vector, repetitions, false, UnpackMethod::kernels));
  rates.best_vector_block_ns = best_vector_ns / warm_blocks;
  SPL_ASSIGN(const double best_list_ns, unpack_ns(list, repetitions, false, UnpackMethod::kernels));
  rates.best_list_block_ns = best_list_ns / warm_blocks;
  SPL_ASSIGN(const double walk_ns, unpack_ns(list, repetitions, false, UnpackMethod::walk));
  rates.segment_block_ns = walk_ns / warm_blocks;

  SPL_ASSIGN(const layout::Type single_block, layout::contiguous(8, byte));
  SPL_ASSIGN(rates.start_ns, unpack_ns(single_block, repetitions, true));

  // The copy is an unpack of pieces, which writes by plain stores, because one large memcpy would bypass the cache.
  constexpr int64_t pieces = 2048;
  constexpr int64_t piece_lines = 16;
  SPL_ASSIGN(const layout::Type stream,
             layout::hvector(pieces, piece_lines * line_bytes, 2 * piece_lines * line_bytes, byte));
  SPL_ASSIGN(const double stream_ns, unpack_ns(stream, repetitions, true));
  rates.streamed_line_ns = (stream_ns - rates.start_ns - pieces * rates.vector_block_ns) / (2 * pieces * piece_lines);

  // One line for each block, with other lines between, so that fetching a line brings no other block along.
  constexpr int64_t places = 4096;
  constexpr int64_t place_bytes = 8;
  constexpr int64_t packed_lines = places * place_bytes / line_bytes;
  const double known_ns = rates.start_ns + packed_lines * rates.streamed_line_ns;
  constexpr int64_t long_stride = 51 * line_bytes;  // odd, so that sets of the caches are used evenly
  SPL_ASSIGN(const layout::Type strided, layout::hvector(places, place_bytes, long_stride, byte));
  SPL_ASSIGN(const double strided_ns, unpack_ns(strided, repetitions, true));
  rates.strided_line_ns = (strided_ns - known_ns) / places - rates.vector_block_ns;
  SPL_ASSIGN(const layout::Type scattered,
             layout::hindexed_block(place_bytes, shuffled_places(places, 5 * line_bytes), byte));
  SPL_ASSIGN(const double scattered_ns, unpack_ns(scattered, repetitions, true));
  rates.scattered_line_ns = (scattered_ns - known_ns) / places - rates.list_block_ns;

  // The columns of a matrix whose rows are a power of two apart: the lines of one column share two sets of a
  // first-level cache of 64 sets.
  constexpr int64_t columns = 64;
  constexpr int64_t rows = 128;
  SPL_ASSIGN(const layout::Type column, layout::hvector(rows, warm_bytes, 2048, byte));
  SPL_ASSIGN(const layout::Type matrix, layout::hvector(columns, 1, warm_bytes, column));
  SPL_ASSIGN(const double matrix_ns, unpack_ns(matrix, repetitions, false));
  rates.refilled_line_ns = matrix_ns / (columns * rows) - rates.vector_block_ns;
  return rates;
}

Result<HostPrediction> predict_unpack(const simulated::Profile& profile, const std::string& type_text, int64_t count) {
  SPL_ASSIGN(const strategies::Message message, message_of(type_text, count));
  const portals::HostWork work = strategies::unpack_work(message, portals::HostWork::Kind::interpret);
  return HostPrediction{work.blocks, simulated::host_cost(profile, work)};
}

}  // namespace spinloom::app
