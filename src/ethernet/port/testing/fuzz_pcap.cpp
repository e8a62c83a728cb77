// Fuzz target: capture files from outside. Any bytes are refused with an Error, or give frames that together are no
// longer than the file.
#include <array>

#include "base/testing/fuzz.hpp"
#include "ethernet/port/pcap_file.hpp"
#include "nic/packet/testing/random_frames.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spinloom;
  if (size == 0) return -1;
  port::File file(fmemopen(const_cast<uint8_t*>(data), size, "rb"));
  auto reader = port::PcapReader::open(std::move(file), "fuzz.pcap");
  if (!reader) {
    SPL_ASSERT(!reader.error().message.empty(), "an Error without a sentence");
    return -1;
  }
  size_t bytes = port::pcap_header_bytes;
  std::array<packet::Bytes, 4> batch;
  while (!reader->ended()) {
    const auto count = reader->read(batch);
    if (!count) {
      SPL_ASSERT(!count.error().message.empty(), "an Error without a sentence");
      return 0;
    }
    for (size_t i = 0; i < *count; ++i) bytes += port::pcap_record_header_bytes + batch[i].size();
    SPL_ASSERT(bytes <= size, "more frames than bytes");
  }
  return 0;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  for (int i = 0; i < 64; ++i) {
    const port::PcapFormat format{random.chance(1, 2), random.chance(1, 2), random.chance(1, 4) ? 4U : 0U};
    const auto header = port::write_pcap_header(format);
    Input file(header.begin(), header.end());
    for (uint64_t records = random.below(4); records > 0; --records) {
      const auto frame = packet::test::random_bytes(random, 14 + random.below(100));
      const auto length = static_cast<uint32_t>(frame.size());
      const auto record = port::write_pcap_record(format, {random.between(0, 1LL << 60), length, length});
      file.insert(file.end(), record.begin(), record.end());
      file.insert(file.end(), frame.begin(), frame.end());
    }
    out.push_back(file);
  }
  return out;
}

void mutate(Random& random, Input& input) {
  if (input.size() < 8) return;
  const uint8_t filler = random.chance(1, 2) ? 0 : 255;
  const size_t at = random.below(input.size() - 7);
  std::fill_n(input.begin() + static_cast<int64_t>(at), 1 + random.below(4), filler);
}

}  // namespace spinloom::fuzz
