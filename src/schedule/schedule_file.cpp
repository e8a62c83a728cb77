#include "schedule/schedule_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "schedule/goal.hpp"

namespace spinloom::schedule {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian and is copied as it is");

constexpr std::string_view magic = "SPLSCHED";
constexpr uint32_t version = 1;
constexpr uint32_t has_ends = 1;

struct Head {
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t flags = 0;
  uint32_t ranks = 0;
  uint32_t programs = 0;
  uint32_t shapes = 0;
  uint32_t layouts = 0;
  uint64_t operations = 0;  // of all Programs
  uint64_t edges = 0;
  uint64_t blob_bytes = 0;
  uint64_t checksum = 0;  // of the whole file with 0 here
};
static_assert(sizeof(Head) == 64);

struct ProgramEntry {
  uint32_t operations;
  uint32_t edges;
};
struct LayoutEntry {
  uint64_t blob_bytes;
  int64_t count;
  uint64_t bytes;
};
static_assert(sizeof(Shape) == 16 && sizeof(Ends) == 8 && sizeof(Operation) == 12 && sizeof(Edge) == 4);
static_assert(std::has_unique_object_representations_v<Shape> && std::has_unique_object_representations_v<LayoutEntry>);

uint64_t checksum_of(Head head, std::string_view rest) {
  constexpr uint64_t prime = 0x0000'0100'0000'01b3;
  head.checksum = 0;
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  const auto mix = [&](const char* bytes, size_t length) {
    for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, std::min(sizeof word, length - at));
      hash = (hash ^ word) * prime;
      hash ^= hash >> 32;
    }
  };
  mix(reinterpret_cast<const char*>(&head), sizeof head);
  mix(rest.data(), rest.size());
  return hash;
}

template <class T>
void append(std::string& out, const T* values, size_t count) {
  out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

class FileReader {
 public:
  explicit FileReader(std::string_view bytes) : bytes_(bytes) {}

  Result<Schedule> whole() {
    SPL_TRY(head());
    const auto programs = take<ProgramEntry>(head_.programs, programs_at_);
    parts_.program_of = take<uint32_t>(head_.ranks, sizeof(Head));
    parts_.shapes = take<Shape>(head_.shapes, shapes_at_);
    if ((head_.flags & has_ends) != 0) parts_.ends = take<Ends>(head_.shapes, ends_at_);
    SPL_TRY(ranks_have_programs());
    SPL_TRY(shapes_are_some());
    SPL_TRY(layouts());
    uint64_t operation = 0;
    uint64_t edge = 0;
    for (uint32_t number = 0; number < head_.programs; ++number) {
      const ProgramEntry entry = programs[number];
      const uint64_t entry_at = programs_at_ + number * sizeof(ProgramEntry);
      if (entry.operations > head_.operations - operation || entry.edges > head_.edges - edge ||
          entry.operations > Edge::operations_most) {
        return fail(Code::invalid, "byte ", entry_at, ": program ", number, " has ", entry.operations,
                    " operations and ", entry.edges, " edges, but ", head_.operations - operation, " and ",
                    head_.edges - edge, " are left");
      }
      SPL_TRY(program(number, entry, operations_at_ + operation * sizeof(Operation), edges_at_ + edge * sizeof(Edge)));
      operation += entry.operations;
      edge += entry.edges;
    }
    if (operation != head_.operations || edge != head_.edges) {
      return fail(Code::invalid, "byte 32: the programs have ", operation, " operations and ", edge,
                  " edges, but the head says ", head_.operations, " and ", head_.edges);
    }
    return Schedule(std::move(parts_));
  }

 private:
  Status head() {
    if (bytes_.size() < sizeof(Head)) {
      return fail(Code::invalid, "byte 0: expected a head of ", sizeof(Head), " bytes, the file has ", bytes_.size());
    }
    std::memcpy(&head_, bytes_.data(), sizeof(Head));
    if (std::string_view(head_.magic.data(), head_.magic.size()) != magic) {
      return fail(Code::invalid, "byte 0: expected '", magic, "', with which our own form of schedules begins");
    }
    if (head_.version != version) {
      return fail(Code::unsupported, "byte 8: the file has version ", head_.version, ", this reads version ", version);
    }
    if ((head_.flags & ~has_ends) != 0) {
      return fail(Code::invalid, "byte 12: flags are ", head_.flags, ", of which only 1 is known");
    }
    programs_at_ = sizeof(Head) + uint64_t{head_.ranks} * sizeof(uint32_t);
    shapes_at_ = programs_at_ + uint64_t{head_.programs} * sizeof(ProgramEntry);
    ends_at_ = shapes_at_ + uint64_t{head_.shapes} * sizeof(Shape);
    layouts_at_ = ends_at_ + ((head_.flags & has_ends) != 0 ? uint64_t{head_.shapes} * sizeof(Ends) : 0);
    blobs_at_ = layouts_at_ + uint64_t{head_.layouts} * sizeof(LayoutEntry);
    // Three numbers of 64 bits, of which none may be larger than the file: their sum then fits.
    const bool fits = std::max({head_.operations, head_.edges, head_.blob_bytes}) <= bytes_.size();
    operations_at_ = blobs_at_ + head_.blob_bytes;
    edges_at_ = operations_at_ + head_.operations * sizeof(Operation);
    if (!fits || edges_at_ + head_.edges * sizeof(Edge) != bytes_.size()) {
      return fail(Code::invalid, "byte 16: ", head_.ranks, " ranks, ", head_.programs, " programs, ", head_.shapes,
                  " shapes, ", head_.layouts, " layouts of ", head_.blob_bytes, " B, ", head_.operations,
                  " operations and ", head_.edges, " edges do not make a file of ", bytes_.size(), " bytes");
    }
    if (const uint64_t found = checksum_of(head_, bytes_.substr(sizeof(Head))); found != head_.checksum) {
      return fail(Code::invalid, "byte 56: the file is damaged: its checksum is ", head_.checksum, ", its bytes make ",
                  found);
    }
    return {};
  }

  template <class T>
  [[nodiscard]] std::vector<T> take(uint64_t count, uint64_t at) const {
    std::vector<T> taken(count);
    if (count != 0) std::memcpy(taken.data(), bytes_.data() + at, count * sizeof(T));
    return taken;
  }

  [[nodiscard]] Status ranks_have_programs() const {
    for (uint32_t rank = 0; rank < head_.ranks; ++rank) {
      const uint32_t number = parts_.program_of[rank];
      if (number >= head_.programs) {
        return fail(Code::invalid, "byte ", sizeof(Head) + rank * sizeof(uint32_t), ": rank ", rank, " has program ",
                    number, ", but there are ", head_.programs);
      }
    }
    return {};
  }

  [[nodiscard]] Status shapes_are_some() const {
    for (uint32_t number = 0; number < head_.shapes; ++number) {
      const Shape& shape = parts_.shapes[number];
      if (shape.kind < Kind::send || shape.kind > Kind::arrived || shape.peer > Peer::relative) {
        return fail(Code::invalid, "byte ", shapes_at_ + number * sizeof(Shape), ": shape ", number, " is of kind ",
                    static_cast<uint32_t>(shape.kind), " with peers of kind ", static_cast<uint32_t>(shape.peer),
                    "; kinds are 1 to ", kinds - 1, " and 0 to 1");
      }
    }
    return {};
  }

  Status layouts() {
    uint64_t at = blobs_at_;
    const auto entries = take<LayoutEntry>(head_.layouts, layouts_at_);
    for (const LayoutEntry& entry : entries) {
      if (entry.blob_bytes > operations_at_ - at) {
        return fail(Code::invalid, "byte ", layouts_at_ + parts_.layouts.size() * sizeof(LayoutEntry), ": layout ",
                    parts_.layouts.size(), " has ", entry.blob_bytes, " B, but ", operations_at_ - at, " are left");
      }
      parts_.layouts.push_back({std::string(bytes_.substr(at, entry.blob_bytes)), entry.count, entry.bytes});
      at += entry.blob_bytes;
    }
    if (at == operations_at_) return {};
    return fail(Code::invalid, "byte 48: the layouts have ", at - blobs_at_, " B, but the head says ",
                head_.blob_bytes);
  }

  Status program(uint32_t number, const ProgramEntry& entry, uint64_t operations_at, uint64_t edges_at) {
    Program made;
    made.operations = take<Operation>(entry.operations, operations_at);
    made.edges.assign(entry.edges, Edge(0, Awaits::end));
    if (entry.edges != 0) std::memcpy(made.edges.data(), bytes_.data() + edges_at, entry.edges * sizeof(Edge));
    uint32_t first = 0;
    for (uint32_t one = 0; one < entry.operations; ++one) {
      const Operation& operation = made.operations[one];
      const auto place = [&] {
        return text("byte ", operations_at + one * sizeof(Operation), ": program ", number, ", operation ", one, ": ");
      };
      if (operation.shape >= head_.shapes) {
        return fail(Code::invalid, place(), "shape ", operation.shape, ", but there are ", head_.shapes);
      }
      if (operation.edges_end < first || operation.edges_end > entry.edges) {
        return fail(Code::invalid, place(), "its edges go from ", first, " to ", operation.edges_end, " of ",
                    entry.edges);
      }
      Awaits before = Awaits::end;
      for (; first < operation.edges_end; ++first) {
        const Edge edge = made.edges[first];
        if (edge.to() >= entry.operations || edge.awaits() < before) {
          return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, ", operation ",
                      one, ": an edge to operation ", edge.to(), " of ", entry.operations,
                      "; those that wait for its end come first");
        }
        before = edge.awaits();
      }
    }
    if (first != entry.edges) {
      return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, " has ", entry.edges,
                  " edges, but only ", first, " belong to an operation");
    }
    parts_.programs.push_back(std::move(made));
    return {};
  }

  std::string_view bytes_;
  Head head_;
  uint64_t programs_at_ = 0;
  uint64_t shapes_at_ = 0;
  uint64_t ends_at_ = 0;
  uint64_t layouts_at_ = 0;
  uint64_t blobs_at_ = 0;
  uint64_t operations_at_ = 0;
  uint64_t edges_at_ = 0;
  Schedule::Parts parts_;
};

}  // namespace

std::string write_schedule(const Schedule& schedule) {
  Head head;
  std::memcpy(head.magic.data(), magic.data(), magic.size());
  head.version = version;
  head.flags = schedule.all_ends().empty() ? 0 : has_ends;
  head.ranks = schedule.ranks();
  head.programs = static_cast<uint32_t>(schedule.programs().size());
  head.shapes = static_cast<uint32_t>(schedule.shapes().size());
  head.layouts = static_cast<uint32_t>(schedule.layouts().size());
  for (const Program& program : schedule.programs()) {
    head.operations += program.operations.size();
    head.edges += program.edges.size();
  }
  for (const Layout& layout : schedule.layouts()) head.blob_bytes += layout.blob.size();
  std::string out;
  append(out, &head, 1);
  std::vector<uint32_t> program_of(head.ranks);
  for (uint32_t rank = 0; rank < head.ranks; ++rank) program_of[rank] = schedule.number_of_program(rank);
  append(out, program_of.data(), program_of.size());
  for (const Program& program : schedule.programs()) {
    const ProgramEntry entry{program.size(), static_cast<uint32_t>(program.edges.size())};
    append(out, &entry, 1);
  }
  append(out, schedule.shapes().data(), head.shapes);
  append(out, schedule.all_ends().data(), schedule.all_ends().size());
  for (const Layout& layout : schedule.layouts()) {
    const LayoutEntry entry{layout.blob.size(), layout.count, layout.bytes};
    append(out, &entry, 1);
  }
  for (const Layout& layout : schedule.layouts()) out += layout.blob;
  for (const Program& program : schedule.programs()) append(out, program.operations.data(), program.size());
  for (const Program& program : schedule.programs()) append(out, program.edges.data(), program.edges.size());
  head.checksum = checksum_of(head, std::string_view(out).substr(sizeof head));
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

Result<Schedule> read_schedule_file(std::string_view bytes) { return FileReader(bytes).whole(); }

Result<Schedule> read_schedule(std::string_view bytes) {
  return bytes.starts_with(magic) ? read_schedule_file(bytes) : read_goal(bytes);
}

}  // namespace spinloom::schedule
