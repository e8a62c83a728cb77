#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "predict/schedule/schedule_file.hpp"
#include "predict/schedule/schedule_file_form.hpp"

namespace spinloom::schedule {
namespace {

// Makes large parts of small ones.
class ChunkedSink {
 public:
  explicit ChunkedSink(const ByteSink& sink) : sink_(sink) {}
  template <class T>
  void add(const T* values, size_t count) {
    std::string_view rest(reinterpret_cast<const char*>(values), count * sizeof(T));
    while (!rest.empty()) {
      const size_t length = std::min(rest.size(), chunk_bytes - chunk_.size());
      chunk_ += rest.substr(0, length);
      rest.remove_prefix(length);
      if (chunk_.size() == chunk_bytes) flush();
    }
  }
  void flush() {
    if (!chunk_.empty()) sink_(chunk_);
    chunk_.clear();
  }

 private:
  static constexpr size_t chunk_bytes = size_t{1} << 20;
  const ByteSink& sink_;
  std::string chunk_;
};

// Adds everything behind the head twice: for the checksum, and to be written.
template <class Body>
void write_twice(file::Head head, const Body& body, const ByteSink& sink) {
  file::Checksum checksum(head);
  const ByteSink add = [&](std::string_view bytes) { checksum.add(bytes); };
  ChunkedSink checksum_input(add);
  body(checksum_input);
  checksum_input.flush();
  head.checksum = checksum.value();
  ChunkedSink file(sink);
  file.add(&head, 1);
  body(file);
  file.flush();
}

bool needs_wide_entries(const Schedule& schedule) {
  return std::ranges::any_of(schedule.shapes(),
                             [](const Shape& shape) { return shape.cpu > UINT8_MAX || shape.nic > UINT8_MAX; });
}

file::Head head_of(const Schedule& schedule) {
  file::Head head;
  std::memcpy(head.magic.data(), file::magic.data(), file::magic.size());
  head.version = file::version;
  head.flags = (schedule.all_transfer_layouts().empty() ? 0 : file::has_transfer_layouts) |
               (needs_wide_entries(schedule) ? file::has_wide : 0);
  head.shapes = static_cast<uint32_t>(schedule.shapes().size());
  head.layouts = static_cast<uint32_t>(schedule.layouts().size());
  for (const Layout& layout : schedule.layouts()) head.blob_bytes += layout.blob.size();
  head.blob_bytes = (head.blob_bytes + file::blobs_end_at - 1) / file::blobs_end_at * file::blobs_end_at;
  return head;
}

void add_shapes(ChunkedSink& out, const Schedule& schedule, uint64_t blob_bytes) {
  const bool has_wide_entries = needs_wide_entries(schedule);
  for (const Shape& shape : schedule.shapes()) {
    const file::ShapeEntry entry{shape.size,
                                 shape.tag,
                                 static_cast<uint8_t>(shape.kind),
                                 static_cast<uint8_t>(shape.peer),
                                 static_cast<uint8_t>(has_wide_entries ? 0 : shape.cpu),
                                 static_cast<uint8_t>(has_wide_entries ? 0 : shape.nic)};
    out.add(&entry, 1);
  }
  for (const Shape& shape : schedule.shapes()) {
    if (!has_wide_entries) break;
    const file::WideEntry entry{shape.cpu, shape.nic};
    out.add(&entry, 1);
  }
  out.add(schedule.all_transfer_layouts().data(), schedule.all_transfer_layouts().size());
  for (const Layout& layout : schedule.layouts()) {
    const file::LayoutEntry entry{layout.blob.size(), layout.count, layout.bytes};
    out.add(&entry, 1);
  }
  for (const Layout& layout : schedule.layouts()) {
    out.add(layout.blob.data(), layout.blob.size());
    blob_bytes -= layout.blob.size();
  }
  constexpr std::array<char, file::blobs_end_at> zeros{};
  out.add(zeros.data(), blob_bytes);
}

// The tables of a file. The operations and edges of Programs are added when the file is written.
struct Tables {
  std::vector<uint32_t> program_of;
  std::vector<file::ProgramEntry> programs;
  std::vector<uint32_t> passes;  // one for each Program; empty: all have one
};

template <class AddOperations, class AddEdges>
void write_file(const Schedule& prototype, const Tables& tables, const AddOperations& add_operations,
                const AddEdges& add_edges, const ByteSink& sink) {
  file::Head head = head_of(prototype);
  head.ranks = static_cast<uint32_t>(tables.program_of.size());
  head.programs = static_cast<uint32_t>(tables.programs.size());
  if (!tables.passes.empty()) head.flags |= file::has_passes;
  for (const file::ProgramEntry& entry : tables.programs) {
    head.operations += entry.operations;
    head.edges += entry.edges;
  }
  const auto body = [&](ChunkedSink& out) {
    out.add(tables.program_of.data(), tables.program_of.size());
    out.add(tables.programs.data(), tables.programs.size());
    out.add(tables.passes.data(), tables.passes.size());
    add_shapes(out, prototype, head.blob_bytes);
    for (uint32_t number = 0; number < head.programs; ++number) add_operations(out, number);
    for (uint32_t number = 0; number < head.programs; ++number) add_edges(out, number);
  };
  write_twice(head, body, sink);
}

}  // namespace

void write_schedule(const Schedule& schedule, const ByteSink& sink) {
  Tables tables;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    tables.program_of.push_back(schedule.number_of_program(rank));
  }
  const std::vector<Program>& programs = schedule.programs();
  const bool repeats = schedule.repeats();
  for (const Program& entry : programs) {
    tables.programs.push_back(
        {static_cast<uint32_t>(entry.operations.size()), static_cast<uint32_t>(entry.edges.size())});
    if (repeats) tables.passes.push_back(entry.passes);
  }
  const auto add = [](ChunkedSink& out, const auto& values) { out.add(values.data(), values.size()); };
  write_file(
      schedule, tables, [&](ChunkedSink& out, uint32_t number) { add(out, programs[number].operations); },
      [&](ChunkedSink& out, uint32_t number) { add(out, programs[number].edges); }, sink);
}

std::string write_schedule(const Schedule& schedule) {
  std::string out;
  write_schedule(schedule, [&](std::string_view bytes) { out += bytes; });
  return out;
}

void write_schedule(const Schedule& prototype, const GeneratedSchedule& generated, const ByteSink& sink) {
  Tables tables;
  for (const GeneratedSchedule::Sizes& entry : generated.sizes) {
    tables.program_of.push_back(static_cast<uint32_t>(tables.programs.size()));
    tables.programs.push_back({entry.operations, entry.edges});
  }
  const auto add = [](ChunkedSink& out, const auto& values) { out.add(values.data(), values.size()); };
  write_file(
      prototype, tables, [&](ChunkedSink& out, uint32_t rank) { add(out, generated.operations(rank)); },
      [&](ChunkedSink& out, uint32_t rank) { add(out, generated.edges(rank)); }, sink);
}

}  // namespace spinloom::schedule
