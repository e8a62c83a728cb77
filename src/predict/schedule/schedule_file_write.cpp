#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "predict/schedule/schedule_file.hpp"
#include "predict/schedule/schedule_file_form.hpp"

namespace spinloom::schedule {
namespace {

// Makes large parts of small ones.
class Parts {
 public:
  explicit Parts(const TakeBytes& take) : take_(take) {}
  template <class T>
  void add(const T* values, size_t count) {
    std::string_view more(reinterpret_cast<const char*>(values), count * sizeof(T));
    while (!more.empty()) {
      const size_t length = std::min(more.size(), part_bytes - part_.size());
      part_ += more.substr(0, length);
      more.remove_prefix(length);
      if (part_.size() == part_bytes) end();
    }
  }
  void end() {
    if (!part_.empty()) take_(part_);
    part_.clear();
  }

 private:
  static constexpr size_t part_bytes = size_t{1} << 20;
  const TakeBytes& take_;
  std::string part_;
};

// Adds everything behind the head twice: for the checksum, and to be written.
template <class Body>
void write(file::Head head, const Body& body, const TakeBytes& take) {
  file::Checksum checksum(head);
  const TakeBytes add = [&](std::string_view bytes) { checksum.add(bytes); };
  Parts sums(add);
  body(sums);
  sums.end();
  head.checksum = checksum.value();
  Parts parts(take);
  parts.add(&head, 1);
  body(parts);
  parts.end();
}

bool is_wide(const Schedule& schedule) {
  return std::ranges::any_of(schedule.shapes(),
                             [](const Shape& shape) { return shape.cpu > UINT8_MAX || shape.nic > UINT8_MAX; });
}

file::Head head_like(const Schedule& schedule) {
  file::Head head;
  std::memcpy(head.magic.data(), file::magic.data(), file::magic.size());
  head.version = file::version;
  head.flags = (schedule.all_ends().empty() ? 0 : file::has_ends) | (is_wide(schedule) ? file::has_wide : 0);
  head.shapes = static_cast<uint32_t>(schedule.shapes().size());
  head.layouts = static_cast<uint32_t>(schedule.layouts().size());
  for (const Layout& layout : schedule.layouts()) head.blob_bytes += layout.blob.size();
  head.blob_bytes = (head.blob_bytes + file::blobs_end_at - 1) / file::blobs_end_at * file::blobs_end_at;
  return head;
}

void add_shapes(Parts& out, const Schedule& schedule, uint64_t blob_bytes) {
  const bool wide = is_wide(schedule);
  for (const Shape& shape : schedule.shapes()) {
    const file::ShapeEntry entry{shape.size,
                                 shape.tag,
                                 static_cast<uint8_t>(shape.kind),
                                 static_cast<uint8_t>(shape.peer),
                                 static_cast<uint8_t>(wide ? 0 : shape.cpu),
                                 static_cast<uint8_t>(wide ? 0 : shape.nic)};
    out.add(&entry, 1);
  }
  for (const Shape& shape : schedule.shapes()) {
    if (!wide) break;
    const file::WideEntry entry{shape.cpu, shape.nic};
    out.add(&entry, 1);
  }
  out.add(schedule.all_ends().data(), schedule.all_ends().size());
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
  std::vector<uint32_t> times;  // empty: all once
};

template <class AddOperations, class AddEdges>
void write_file(const Schedule& like, const Tables& tables, const AddOperations& add_operations,
                const AddEdges& add_edges, const TakeBytes& take) {
  file::Head head = head_like(like);
  head.ranks = static_cast<uint32_t>(tables.program_of.size());
  head.programs = static_cast<uint32_t>(tables.programs.size());
  if (!tables.times.empty()) head.flags |= file::has_times;
  for (const file::ProgramEntry& one : tables.programs) {
    head.operations += one.operations;
    head.edges += one.edges;
  }
  const auto body = [&](Parts& out) {
    out.add(tables.program_of.data(), tables.program_of.size());
    out.add(tables.programs.data(), tables.programs.size());
    out.add(tables.times.data(), tables.times.size());
    add_shapes(out, like, head.blob_bytes);
    for (uint32_t number = 0; number < head.programs; ++number) add_operations(out, number);
    for (uint32_t number = 0; number < head.programs; ++number) add_edges(out, number);
  };
  write(head, body, take);
}

}  // namespace

void write_schedule(const Schedule& schedule, const TakeBytes& take) {
  Tables tables;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    tables.program_of.push_back(schedule.number_of_program(rank));
  }
  const std::vector<Program>& programs = schedule.programs();
  const bool repeats = schedule.repeats();
  for (const Program& one : programs) {
    tables.programs.push_back({static_cast<uint32_t>(one.operations.size()), static_cast<uint32_t>(one.edges.size())});
    if (repeats) tables.times.push_back(one.times);
  }
  const auto add = [](Parts& out, const auto& values) { out.add(values.data(), values.size()); };
  write_file(
      schedule, tables, [&](Parts& out, uint32_t number) { add(out, programs[number].operations); },
      [&](Parts& out, uint32_t number) { add(out, programs[number].edges); }, take);
}

std::string write_schedule(const Schedule& schedule) {
  std::string out;
  write_schedule(schedule, [&](std::string_view bytes) { out += bytes; });
  return out;
}

void write_schedule(const Schedule& like, const Made& made, const TakeBytes& take) {
  Tables tables;
  for (const Made::Sizes& one : made.sizes) {
    tables.program_of.push_back(static_cast<uint32_t>(tables.programs.size()));
    tables.programs.push_back({one.operations, one.edges});
  }
  const auto add = [](Parts& out, const auto& values) { out.add(values.data(), values.size()); };
  write_file(
      like, tables, [&](Parts& out, uint32_t rank) { add(out, made.operations(rank)); },
      [&](Parts& out, uint32_t rank) { add(out, made.edges(rank)); }, take);
}

}  // namespace spinloom::schedule
