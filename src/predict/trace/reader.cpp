#include "predict/trace/reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "predict/trace/code.hpp"
#include "predict/trace/file.hpp"
#include "predict/trace/pack.hpp"

namespace spinloom::trace {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t raw_bytes_max = uint64_t{2} << 30;

std::optional<Bytes> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  constexpr size_t step = size_t{1} << 20;
  Bytes content;
  while (file) {
    const size_t before = content.size();
    content.resize(before + step);
    file.read(reinterpret_cast<char*>(content.data() + before), step);
    content.resize(before + static_cast<size_t>(file.gcount()));
  }
  return content;
}

struct Columns {
  std::span<const uint8_t> definitions, signatures, times;
  Columns(std::span<const uint8_t> raw, const std::array<uint32_t, columns>& bytes)
      : definitions(raw.first(bytes[0])),
        signatures(raw.subspan(bytes[0], bytes[1])),
        times(raw.subspan(size_t{bytes[0]} + bytes[1], bytes[2])) {}
};

uint64_t sum(const std::array<uint32_t, columns>& bytes) { return uint64_t{bytes[0]} + bytes[1] + bytes[2]; }

// Makes a trace of chunks, which come in their order.
class TraceBuilder {
 public:
  explicit TraceBuilder(RankTrace& trace) : trace_(trace) {}

  [[nodiscard]] bool has_head() const { return has_head_; }
  // Returns false if the chunk holds something that no writer writes. The events before that are kept.
  [[nodiscard]] bool add_chunk(const Columns& chunk) { return define(chunk.definitions) && add_events(chunk); }

 private:
  bool define(std::span<const uint8_t> definitions) {
    Decoder from(definitions);
    while (!from.is_at_end()) {
      const auto tag = static_cast<Tag>(from.bytes(1)[0]);
      const auto bytes = from.bytes(from.varint());
      if (from.has_failed() || !define(tag, bytes)) return false;
    }
    return true;
  }

  bool define(Tag tag, std::span<const uint8_t> bytes) {
    if ((tag == Tag::head) == has_head_) return false;
    switch (tag) {
      case Tag::head: return define_head(bytes);
      case Tag::type: return decode(bytes, trace_.types.emplace_back()) || remove_last(trace_.types);
      case Tag::comm: return (decode(bytes, trace_.comms.emplace_back()) && has_parent()) || remove_last(trace_.comms);
      case Tag::signature:
        return decode(bytes, trace_, trace_.signatures.emplace_back()) || remove_last(trace_.signatures);
    }
    return false;
  }
  [[nodiscard]] bool has_parent() const {
    const uint32_t parent = trace_.comms.back().parent;
    return parent == none || parent + 1 < trace_.comms.size();
  }
  // Removes an entry that could not be decoded. Returns false.
  template <class Entry>
  static bool remove_last(std::vector<Entry>& entries) {
    entries.pop_back();
    return false;
  }

  bool define_head(std::span<const uint8_t> bytes) {
    Head head;
    if (!decode(bytes, head)) return false;
    has_head_ = true;
    trace_.rank = head.rank;
    trace_.ranks = head.ranks;
    trace_.begun_ns = head.begun_ns;
    trace_.begun_unix_ns = head.begun_unix_ns;
    trace_.host = std::move(head.host);
    trace_.mpi = std::move(head.mpi);
    trace_.program = std::move(head.program);
    trace_.is_cpu_time = head.is_cpu_time;
    return true;
  }

  bool add_events(const Columns& chunk) {
    Decoder signatures(chunk.signatures);
    Decoder times(chunk.times);
    uint64_t last_end_ns = 0;
    while (!signatures.is_at_end()) {
      const uint64_t word = signatures.varint();
      const uint64_t polls = (word & 1) != 0 ? signatures.varint() : 0;
      const uint64_t since_last_ns = times.varint();
      const uint64_t duration_ns = times.varint();
      if (signatures.has_failed() || times.has_failed() || word >> 1 >= trace_.signatures.size() || polls > UINT32_MAX)
        return false;
      uint64_t end_ns = 0;
      if (__builtin_add_overflow(last_end_ns, since_last_ns, &end_ns) || duration_ns > end_ns) return false;
      if (!trace_.events.empty() && end_ns < trace_.events.back().end_ns) return false;
      trace_.events.push_back(
          {static_cast<uint32_t>(word >> 1), static_cast<uint32_t>(polls), end_ns - duration_ns, end_ns});
      last_end_ns = end_ns;
    }
    return times.is_at_end();
  }

  RankTrace& trace_;
  bool has_head_ = false;
};

// The open chunk, as it was at some moment.
struct OpenChunk {
  uint64_t sequence = 0;
  std::array<uint32_t, columns> bytes{};
  Bytes raw;
  std::string trouble;
  uint64_t under_way = 0;
};

std::optional<OpenChunk> snapshot(const Bytes& file) {
  if (file.size() < OpenHeader::bytes || std::memcmp(file.data(), open_magic.data(), open_magic.size()) != 0) {
    return std::nullopt;
  }
  const auto word = [&file](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  };
  std::array<uint32_t, columns> rooms{};
  std::memcpy(rooms.data(), file.data() + offsetof(OpenHeader, rooms), sizeof rooms);
  OpenChunk chunk{.sequence = word(offsetof(OpenHeader, sequence)),
                  .bytes = bytes_of(word(offsetof(OpenHeader, lengths))),
                  .raw = {},
                  .trouble = {},
                  .under_way = word(offsetof(OpenHeader, under_way))};
  size_t at = OpenHeader::bytes;
  for (size_t i = 0; i < columns; ++i) {
    if (chunk.bytes[i] > rooms[i] || rooms[i] > file.size() - at) return std::nullopt;
    chunk.raw.insert(chunk.raw.end(), file.begin() + static_cast<std::ptrdiff_t>(at),
                     file.begin() + static_cast<std::ptrdiff_t>(at + chunk.bytes[i]));
    at += rooms[i];
  }
  const auto* const reason = reinterpret_cast<const char*>(file.data()) + offsetof(OpenHeader, trouble);
  chunk.trouble.assign(reason, strnlen(reason, sizeof OpenHeader::trouble));
  return chunk;
}

// A rank that runs goes on writing: bytes that were read twice with the same number were not written meanwhile.
std::optional<OpenChunk> read_open(const std::string& path) {
  constexpr int tries = 100;
  std::optional<OpenChunk> last;
  for (int i = 0; i < tries; ++i) {
    const auto file = content_of(path);
    const auto reread = file ? content_of(path) : std::nullopt;
    last = file ? snapshot(*file) : std::nullopt;
    const auto later = reread ? snapshot(*reread) : std::nullopt;
    if (!last || !later || last->sequence == later->sequence) return last;
  }
  return last;
}

struct Chunks {
  uint32_t complete = 0;  // the number of chunks that have been read
  std::string warning;
};

Chunks read_chunks(const Bytes& file, const std::string& path, TraceBuilder& builder) {
  Chunks chunks;
  size_t at = trace_magic.size();
  while (at < file.size()) {
    const auto damaged = [&](std::string_view what) {
      chunks.warning = text(path, " is ", what, " at byte ", at, ": the trace ends there");
      return chunks;
    };
    ChunkHeader header;
    if (file.size() - at < sizeof header) return damaged("cut");
    std::memcpy(&header, file.data() + at, sizeof header);
    const size_t remaining = file.size() - at - sizeof header;
    if (header.magic != chunk_magic || header.sequence != chunks.complete) return damaged("damaged");
    if (header.stored_bytes > remaining) return damaged("cut");
    const std::span<const uint8_t> stored{file.data() + at + sizeof header, header.stored_bytes};
    if (checksum_of(header, stored) != header.checksum) return damaged("damaged");
    const uint64_t raw_bytes = sum(header.bytes);
    Bytes raw;
    if (header.packing == Packing::zstd) {
      if (!can_pack()) {
        chunks.warning = text(path, " is packed by zstd, and libzstd.so.1 is not here: install it to read the trace");
        return chunks;
      }
      if (raw_bytes > raw_bytes_max || !unpack(stored, raw_bytes, raw)) return damaged("damaged");
    } else if (header.packing != Packing::raw || raw_bytes != stored.size()) {
      return damaged("damaged");
    }
    if (!builder.add_chunk({header.packing == Packing::raw ? stored : std::span<const uint8_t>(raw), header.bytes})) {
      return damaged("damaged");
    }
    ++chunks.complete;
    at += sizeof header + header.stored_bytes;
  }
  return chunks;
}

void note_under_way(uint64_t word, RankTrace& trace) {
  const uint64_t call = word & 0xff;
  const uint64_t form = word >> UnderWay::form_shift & 0xff;
  if (call == 0 || call - 1 > static_cast<uint64_t>(Call::File_write) || form > 2) return;
  trace.is_under_way = true;
  trace.under_way = static_cast<Call>(call - 1);
  trace.under_way_form = static_cast<CallForm>(form);
  trace.under_way_ns = word >> UnderWay::time_shift;
}

}  // namespace

Result<std::vector<uint32_t>> ranks_in(const std::string& directory) {
  std::error_code code;
  std::vector<uint32_t> ranks;
  for (auto entry = fs::directory_iterator(directory, code); !code && entry != fs::directory_iterator();
       entry.increment(code)) {
    const std::string file = entry->path().filename().string();
    std::string_view name = file;
    if (!name.starts_with("rank-") || !name.ends_with(".trace")) continue;
    name = name.substr(5, name.size() - 11);
    uint32_t rank = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), rank);
    if (read.ec == std::errc{} && read.ptr == name.data() + name.size()) ranks.push_back(rank);
  }
  if (code) return fail(Code::invalid, directory, ": ", code.message());
  if (ranks.empty()) {
    return fail(Code::invalid, directory, " holds no recorded program (rank-0.trace): 'spinloom record' makes one");
  }
  std::ranges::sort(ranks);
  return ranks;
}

Result<RankTrace> read_rank(const std::string& directory, uint32_t rank) {
  const std::string path = trace_path(directory, rank);
  // The open chunk is read first: a rank that is running may append it to the file between both reads, and then the
  // file has it. The other way round it would be in neither.
  const auto open = read_open(open_path(directory, rank));
  const auto file = content_of(path);
  if (!file) return fail(Code::invalid, path, " cannot be read");
  if (file->size() < trace_magic.size() || std::memcmp(file->data(), trace_magic.data(), trace_magic.size()) != 0) {
    return fail(Code::invalid, path, " is no recorded program: it does not begin with SPLTRC01");
  }
  RankTrace trace;
  TraceBuilder builder(trace);
  Chunks chunks = read_chunks(*file, path, builder);
  if (open && open->sequence == chunks.complete) {
    // A rank that was killed while it added this chunk has left a part of it in the file; the open chunk is the whole.
    chunks.warning.clear();
    if (!builder.add_chunk({open->raw, open->bytes})) {
      chunks.warning = text(open_path(directory, rank), " is damaged: the trace ends before its end");
    }
  }
  trace.tells_under_way = open && open->trouble.empty();
  if (trace.tells_under_way) note_under_way(open->under_way, trace);
  if (open && !open->trouble.empty()) chunks.warning = text("recording stopped: ", open->trouble);
  if (!builder.has_head()) {
    return fail(Code::invalid, chunks.warning.empty() ? text(path, " holds no trace: its rank ended before it began")
                                                      : chunks.warning);
  }
  if (trace.rank != rank) return fail(Code::invalid, path, " is the trace of rank ", trace.rank);
  trace.warning = std::move(chunks.warning);
  trace.has_ended = !trace.events.empty() && trace.signatures[trace.events.back().signature].call == Call::Finalize;
  return trace;
}

Result<std::vector<RankTrace>> read(const std::string& directory) {
  SPL_ASSIGN(const std::vector<uint32_t> ranks, ranks_in(directory));
  std::vector<RankTrace> traces;
  for (const uint32_t rank : ranks) {
    SPL_ASSIGN(RankTrace trace, read_rank(directory, rank));
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace spinloom::trace
