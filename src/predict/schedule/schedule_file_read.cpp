#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "predict/schedule/content.hpp"
#include "predict/schedule/goal.hpp"
#include "predict/schedule/schedule_file.hpp"
#include "predict/schedule/schedule_file_form.hpp"

namespace spinloom::schedule {
namespace {

class FileReader {
 public:
  // `owner`: Programs may stay where they are, and this keeps them there.
  FileReader(std::string_view bytes, std::shared_ptr<const void> owner, const Watch& watch)
      : bytes_(bytes), progress_(watch, "reading the schedule") {
    parts_.source = std::move(owner);
  }

  Result<Schedule> read() {
    SPL_TRY(read_head());
    const auto programs = read_table<file::ProgramEntry>(head_.programs, programs_at_);
    const auto passes_of_programs =
        read_table<uint32_t>((head_.flags & file::has_passes) != 0 ? head_.programs : 0, passes_at_);
    parts_.program_of = read_table<uint32_t>(head_.ranks, sizeof(file::Head));
    if ((head_.flags & file::has_transfer_layouts) != 0)
      parts_.transfer_layouts = read_table<TransferLayouts>(head_.shapes, transfer_layouts_at_);
    SPL_TRY(check_program_numbers());
    SPL_TRY(read_shapes());
    SPL_TRY(read_layouts());
    uint64_t operation = 0;
    uint64_t edge = 0;
    for (uint32_t number = 0; number < head_.programs; ++number) {
      const file::ProgramEntry entry = programs[number];
      const uint64_t entry_at = programs_at_ + number * sizeof(file::ProgramEntry);
      if (entry.operations > head_.operations - operation || entry.edges > head_.edges - edge ||
          entry.operations > Edge::operations_max) {
        return fail(Code::invalid, "byte ", entry_at, ": program ", number, " has ", entry.operations,
                    " operations and ", entry.edges, " edges, but ", head_.operations - operation, " and ",
                    head_.edges - edge, " are left");
      }
      const uint32_t passes = passes_of_programs.empty() ? 1 : passes_of_programs[number];
      if (passes == 0 || uint64_t{passes} * entry.operations > Edge::operations_max) {
        return fail(Code::invalid, "byte ", passes_at_ + number * sizeof(uint32_t), ": program ", number, " has ",
                    passes, " passes of ", entry.operations, " operations; there is at least one pass, and ",
                    Edge::operations_max, " operations at most");
      }
      SPL_TRY(read_program(number, entry, passes, operations_at_ + operation * sizeof(Operation),
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
  Status read_head() {
    if (bytes_.size() < sizeof(file::Head)) {
      return fail(Code::invalid, "byte 0: expected a head of ", sizeof(file::Head), " bytes, the file has ",
                  bytes_.size());
    }
    std::memcpy(&head_, bytes_.data(), sizeof(file::Head));
    if (std::string_view(head_.magic.data(), head_.magic.size()) != file::magic) {
      return fail(Code::invalid, "byte 0: expected '", file::magic, "', with which our own form of schedules begins");
    }
    if (head_.version != file::version) {
      return fail(Code::unsupported, "byte 8: the file has version ", head_.version, ", this reads version ",
                  file::version);
    }
    if ((head_.flags & ~file::flags_known) != 0) {
      return fail(Code::invalid, "byte 12: flags are ", head_.flags, ", of which only 1, 2 and 4 are known");
    }
    programs_at_ = sizeof(file::Head) + uint64_t{head_.ranks} * sizeof(uint32_t);
    passes_at_ = programs_at_ + uint64_t{head_.programs} * sizeof(file::ProgramEntry);
    shapes_at_ = passes_at_ + ((head_.flags & file::has_passes) != 0 ? uint64_t{head_.programs} * sizeof(uint32_t) : 0);
    wide_at_ = shapes_at_ + uint64_t{head_.shapes} * sizeof(file::ShapeEntry);
    transfer_layouts_at_ =
        wide_at_ + ((head_.flags & file::has_wide) != 0 ? uint64_t{head_.shapes} * sizeof(file::WideEntry) : 0);
    layouts_at_ =
        transfer_layouts_at_ +
        ((head_.flags & file::has_transfer_layouts) != 0 ? uint64_t{head_.shapes} * sizeof(TransferLayouts) : 0);
    blobs_at_ = layouts_at_ + uint64_t{head_.layouts} * sizeof(file::LayoutEntry);
    // Three numbers of 64 bits, of which none may be larger than the file: their sum then fits.
    const bool is_within_file = std::max({head_.operations, head_.edges, head_.blob_bytes}) <= bytes_.size();
    operations_at_ = blobs_at_ + head_.blob_bytes;
    edges_at_ = operations_at_ + head_.operations * sizeof(Operation);
    if (!is_within_file || edges_at_ + head_.edges * sizeof(Edge) != bytes_.size()) {
      return fail(Code::invalid, "byte 16: ", head_.ranks, " ranks, ", head_.programs, " programs, ", head_.shapes,
                  " shapes, ", head_.layouts, " layouts of ", head_.blob_bytes, " B, ", head_.operations,
                  " operations and ", head_.edges, " edges do not make a file of ", bytes_.size(), " bytes");
    }
    file::Checksum checksum(head_);
    constexpr size_t part_bytes = size_t{1} << 22;
    for (size_t at = sizeof(file::Head); at < bytes_.size(); at += part_bytes) {
      checksum.add(bytes_.substr(at, part_bytes));
      SPL_TRY(progress_.advance(part_bytes / sizeof(uint64_t)));
    }
    if (checksum.value() != head_.checksum) {
      return fail(Code::invalid, "byte 56: the file is damaged: its checksum is ", head_.checksum, ", its bytes make ",
                  checksum.value());
    }
    return {};
  }

  template <class T>
  [[nodiscard]] std::vector<T> read_table(uint64_t count, uint64_t at) const {
    std::vector<T> table(count);
    if (count != 0) std::memcpy(table.data(), bytes_.data() + at, count * sizeof(T));
    return table;
  }

  [[nodiscard]] Status check_program_numbers() const {
    for (uint32_t rank = 0; rank < head_.ranks; ++rank) {
      const uint32_t number = parts_.program_of[rank];
      if (number >= head_.programs) {
        return fail(Code::invalid, "byte ", sizeof(file::Head) + rank * sizeof(uint32_t), ": rank ", rank,
                    " has program ", number, ", but there are ", head_.programs);
      }
    }
    return {};
  }

  Status read_shapes() {
    const auto entries = read_table<file::ShapeEntry>(head_.shapes, shapes_at_);
    const bool is_wide = (head_.flags & file::has_wide) != 0;
    const auto wide = read_table<file::WideEntry>(is_wide ? head_.shapes : 0, wide_at_);
    parts_.shapes.reserve(entries.size());
    for (uint32_t number = 0; number < head_.shapes; ++number) {
      const file::ShapeEntry& entry = entries[number];
      const uint64_t at = shapes_at_ + number * sizeof(file::ShapeEntry);
      const auto kind = static_cast<Kind>(entry.kind);
      const auto peer = static_cast<Peer>(entry.peer);
      if (kind < Kind::send || kind > Kind::arrived || peer > Peer::relative) {
        return fail(Code::invalid, "byte ", at, ": shape ", number, " is of kind ", uint32_t{entry.kind},
                    " with peers of kind ", uint32_t{entry.peer}, "; kinds are 1 to ", kinds - 1, " and 0 to 1");
      }
      if (is_wide && (entry.cpu != 0 || entry.nic != 0)) {
        return fail(Code::invalid, "byte ", at, ": shape ", number, " has cpu ", uint32_t{entry.cpu}, " and nic ",
                    uint32_t{entry.nic}, " here, and others behind: with flag 4 these are 0");
      }
      parts_.shapes.push_back({entry.size, entry.tag, kind, peer, is_wide ? wide[number].cpu : entry.cpu,
                               is_wide ? wide[number].nic : entry.nic});
    }
    return {};
  }

  Status read_layouts() {
    uint64_t at = blobs_at_;
    const auto entries = read_table<file::LayoutEntry>(head_.layouts, layouts_at_);
    for (const file::LayoutEntry& entry : entries) {
      if (entry.blob_bytes > operations_at_ - at) {
        return fail(Code::invalid, "byte ", layouts_at_ + parts_.layouts.size() * sizeof(file::LayoutEntry),
                    ": layout ", parts_.layouts.size(), " has ", entry.blob_bytes, " B, but ", operations_at_ - at,
                    " are left");
      }
      parts_.layouts.push_back({std::string(bytes_.substr(at, entry.blob_bytes)), entry.count, entry.bytes});
      at += entry.blob_bytes;
    }
    // Zeros fill up to a multiple of 4.
    if (operations_at_ - at < file::blobs_end_at &&
        std::ranges::all_of(
            bytes_.substr(at, operations_at_ - at), [](char operation_number) { return operation_number == 0; }))
      return {};
    return fail(Code::invalid, "byte 48: the layouts have ", at - blobs_at_, " B, but the head says ",
                head_.blob_bytes);
  }

  // Returns values where the file has them if it stays in memory and they are aligned there; else a copy of them.
  template <class T>
  [[nodiscard]] Values<T> read_values(uint32_t count, uint64_t at) const {
    const char* const first = bytes_.data() + at;
    if (parts_.source != nullptr && reinterpret_cast<uintptr_t>(first) % alignof(T) == 0) {
      return Values<T>::borrow({reinterpret_cast<const T*>(first), count});
    }
    std::vector<T> table(count, T{});
    if (count != 0) std::memcpy(table.data(), first, count * sizeof(T));
    return table;
  }

  Status read_program(uint32_t number, const file::ProgramEntry& entry, uint32_t passes, uint64_t operations_at,
                      uint64_t edges_at) {
    Program program{read_values<Operation>(entry.operations, operations_at), read_values<Edge>(entry.edges, edges_at),
                    passes};
    // Edges of several passes may lead to the next one.
    const uint64_t targets = uint64_t{entry.operations} * (passes == 1 ? 1 : 2);
    uint32_t first = 0;
    for (uint32_t operation_number = 0; operation_number < entry.operations; ++operation_number) {
      if (operation_number % Progress::steps_between == 0)
        SPL_TRY(progress_.advance(std::min<uint64_t>(Progress::steps_between, entry.operations)));
      const Operation& operation = program.operations[operation_number];
      const auto place = [&] {
        return text("byte ", operations_at + operation_number * sizeof(Operation), ": program ", number, ", operation ",
                    operation_number, ": ");
      };
      if (operation.shape >= head_.shapes) {
        return fail(Code::invalid, place(), "shape ", operation.shape, ", but there are ", head_.shapes);
      }
      if (operation.edges_end < first || operation.edges_end > entry.edges) {
        return fail(Code::invalid, place(), "its edges go from ", first, " to ", operation.edges_end, " of ",
                    entry.edges);
      }
      Awaits previous = Awaits::end;
      for (; first < operation.edges_end; ++first) {
        const Edge edge = program.edges[first];
        if (edge.to() >= targets || edge.awaits() < previous) {
          return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, ", operation ",
                      operation_number, ": an edge to operation ", edge.to(), " of ", entry.operations,
                      "; those that wait for its end come first");
        }
        if (passes > 1 && edge.to() <= operation_number) {
          return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, ", operation ",
                      operation_number, ": an edge back to operation ", edge.to(),
                      "; with several passes edges go forward");
        }
        previous = edge.awaits();
      }
    }
    if (first != entry.edges) {
      return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, " has ", entry.edges,
                  " edges, but only ", first, " belong to an operation");
    }
    parts_.programs.push_back(std::move(program));
    return {};
  }

  std::string_view bytes_;
  Progress progress_;
  file::Head head_;
  uint64_t programs_at_ = 0;
  uint64_t passes_at_ = 0;
  uint64_t shapes_at_ = 0;
  uint64_t wide_at_ = 0;
  uint64_t transfer_layouts_at_ = 0;
  uint64_t layouts_at_ = 0;
  uint64_t blobs_at_ = 0;
  uint64_t operations_at_ = 0;
  uint64_t edges_at_ = 0;
  Schedule::Parts parts_;
};

}  // namespace

Result<Schedule> read_schedule_file(std::string_view bytes, const Watch& watch) {
  return FileReader(bytes, nullptr, watch).read();
}

Result<Schedule> read_schedule(std::string_view bytes, const Watch& watch) {
  return bytes.starts_with(file::magic) ? read_schedule_file(bytes, watch) : read_goal(bytes, watch);
}

Result<Schedule> open_schedule(const std::string& path, const Watch& watch) {
  SPL_ASSIGN(const Content content, content_of(path));
  if (!content.bytes.starts_with(file::magic)) return read_goal(content.bytes, watch);
  return FileReader(content.bytes, content.owner, watch).read();
}

}  // namespace spinloom::schedule
