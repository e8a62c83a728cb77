#include "schedule/schedule_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "schedule/content.hpp"
#include "schedule/goal.hpp"

namespace spinloom::schedule {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian and is copied as it is");

constexpr std::string_view magic = "SPLSCHED";
constexpr uint32_t version = 1;
constexpr uint32_t has_ends = 1;
constexpr uint32_t has_times = 2;

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

constexpr size_t blobs_end_at = 4;  // a multiple of it, so that operations can be used where they lie

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

// Takes bytes in parts, of which all but the last are whole words.
class Checksum {
 public:
  explicit Checksum(Head head) {
    head.checksum = 0;
    add({reinterpret_cast<const char*>(&head), sizeof head});
  }
  void add(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
      hash_ = (hash_ ^ word) * 0x0000'0100'0000'01b3;
      hash_ ^= hash_ >> 32;
    }
  }
  [[nodiscard]] uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf2'9ce4'8422'2325;
};

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

// Everything behind the head twice: for the checksum, and to be written.
template <class Body>
void write(Head head, const Body& body, const TakeBytes& take) {
  Checksum checksum(head);
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

Head head_like(const Schedule& schedule) {
  Head head;
  std::memcpy(head.magic.data(), magic.data(), magic.size());
  head.version = version;
  head.flags = schedule.all_ends().empty() ? 0 : has_ends;
  head.shapes = static_cast<uint32_t>(schedule.shapes().size());
  head.layouts = static_cast<uint32_t>(schedule.layouts().size());
  for (const Layout& layout : schedule.layouts()) head.blob_bytes += layout.blob.size();
  head.blob_bytes = (head.blob_bytes + blobs_end_at - 1) / blobs_end_at * blobs_end_at;
  return head;
}

void add_shapes(Parts& out, const Schedule& schedule, uint64_t blob_bytes) {
  out.add(schedule.shapes().data(), schedule.shapes().size());
  out.add(schedule.all_ends().data(), schedule.all_ends().size());
  for (const Layout& layout : schedule.layouts()) {
    const LayoutEntry entry{layout.blob.size(), layout.count, layout.bytes};
    out.add(&entry, 1);
  }
  for (const Layout& layout : schedule.layouts()) {
    out.add(layout.blob.data(), layout.blob.size());
    blob_bytes -= layout.blob.size();
  }
  constexpr std::array<char, blobs_end_at> zeros{};
  out.add(zeros.data(), blob_bytes);
}

// What a file consists of but for Programs' operations and edges, which are added when it is written.
struct Tables {
  std::vector<uint32_t> program_of;
  std::vector<ProgramEntry> programs;
  std::vector<uint32_t> times;  // empty: all once
};

template <class AddOperations, class AddEdges>
void write_file(const Schedule& like, const Tables& tables, const AddOperations& add_operations,
                const AddEdges& add_edges, const TakeBytes& take) {
  Head head = head_like(like);
  head.ranks = static_cast<uint32_t>(tables.program_of.size());
  head.programs = static_cast<uint32_t>(tables.programs.size());
  if (!tables.times.empty()) head.flags |= has_times;
  for (const ProgramEntry& one : tables.programs) {
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

class FileReader {
 public:
  // `kept`: Programs may stay where they are, and this keeps them there.
  FileReader(std::string_view bytes, std::shared_ptr<const void> kept, const Watch& watch)
      : bytes_(bytes), looks_(watch, "reading the schedule") {
    parts_.source = std::move(kept);
  }

  Result<Schedule> whole() {
    SPL_TRY(head());
    const auto programs = take<ProgramEntry>(head_.programs, programs_at_);
    const auto times = take<uint32_t>((head_.flags & has_times) != 0 ? head_.programs : 0, times_at_);
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
      const uint32_t passes = times.empty() ? 1 : times[number];
      if (passes == 0 || uint64_t{passes} * entry.operations > Edge::operations_most) {
        return fail(Code::invalid, "byte ", times_at_ + number * sizeof(uint32_t), ": program ", number, " has ",
                    passes, " passes of ", entry.operations, " operations; there is at least one pass, and ",
                    Edge::operations_most, " operations at most");
      }
      SPL_TRY(program(number, entry, passes, operations_at_ + operation * sizeof(Operation),
                      edges_at_ + edge * sizeof(Edge)));
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
    if ((head_.flags & ~(has_ends | has_times)) != 0) {
      return fail(Code::invalid, "byte 12: flags are ", head_.flags, ", of which only 1 and 2 are known");
    }
    programs_at_ = sizeof(Head) + uint64_t{head_.ranks} * sizeof(uint32_t);
    times_at_ = programs_at_ + uint64_t{head_.programs} * sizeof(ProgramEntry);
    shapes_at_ = times_at_ + ((head_.flags & has_times) != 0 ? uint64_t{head_.programs} * sizeof(uint32_t) : 0);
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
    Checksum found(head_);
    constexpr size_t part_bytes = size_t{1} << 22;
    for (size_t at = sizeof(Head); at < bytes_.size(); at += part_bytes) {
      found.add(bytes_.substr(at, part_bytes));
      SPL_TRY(looks_.did(part_bytes / sizeof(uint64_t)));
    }
    if (found.value() != head_.checksum) {
      return fail(Code::invalid, "byte 56: the file is damaged: its checksum is ", head_.checksum, ", its bytes make ",
                  found.value());
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
    // Zeros fill up to a multiple of 4.
    if (operations_at_ - at < blobs_end_at &&
        std::ranges::all_of(bytes_.substr(at, operations_at_ - at), [](char one) { return one == 0; }))
      return {};
    return fail(Code::invalid, "byte 48: the layouts have ", at - blobs_at_, " B, but the head says ",
                head_.blob_bytes);
  }

  // Where they lie, if they can be used there.
  template <class T>
  [[nodiscard]] Values<T> values(uint32_t count, uint64_t at) const {
    const char* const first = bytes_.data() + at;
    if (parts_.source != nullptr && reinterpret_cast<uintptr_t>(first) % alignof(T) == 0) {
      return Values<T>::borrow({reinterpret_cast<const T*>(first), count});
    }
    std::vector<T> taken(count, T{});
    if (count != 0) std::memcpy(taken.data(), first, count * sizeof(T));
    return taken;
  }

  Status program(uint32_t number, const ProgramEntry& entry, uint32_t times, uint64_t operations_at,
                 uint64_t edges_at) {
    Program made{values<Operation>(entry.operations, operations_at), values<Edge>(entry.edges, edges_at), times};
    // Edges of several passes may lead to the next one.
    const uint64_t targets = uint64_t{entry.operations} * (times == 1 ? 1 : 2);
    uint32_t first = 0;
    for (uint32_t one = 0; one < entry.operations; ++one) {
      if (one % Looks::steps_between == 0)
        SPL_TRY(looks_.did(std::min<uint64_t>(Looks::steps_between, entry.operations)));
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
        if (edge.to() >= targets || edge.awaits() < before) {
          return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, ", operation ",
                      one, ": an edge to operation ", edge.to(), " of ", entry.operations,
                      "; those that wait for its end come first");
        }
        if (times > 1 && edge.to() <= one) {
          return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, ", operation ",
                      one, ": an edge back to operation ", edge.to(), "; with several passes edges go forward");
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
  Looks looks_;
  Head head_;
  uint64_t programs_at_ = 0;
  uint64_t times_at_ = 0;
  uint64_t shapes_at_ = 0;
  uint64_t ends_at_ = 0;
  uint64_t layouts_at_ = 0;
  uint64_t blobs_at_ = 0;
  uint64_t operations_at_ = 0;
  uint64_t edges_at_ = 0;
  Schedule::Parts parts_;
};

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

Result<Schedule> read_schedule_file(std::string_view bytes, const Watch& watch) {
  return FileReader(bytes, nullptr, watch).whole();
}

Result<Schedule> read_schedule(std::string_view bytes, const Watch& watch) {
  return bytes.starts_with(magic) ? read_schedule_file(bytes, watch) : read_goal(bytes, watch);
}

Result<Schedule> open_schedule(const std::string& path, const Watch& watch) {
  SPL_ASSIGN(const Content content, content_of(path));
  if (!content.bytes.starts_with(magic)) return read_goal(content.bytes, watch);
  return FileReader(content.bytes, content.kept, watch).whole();
}

}  // namespace spinloom::schedule
