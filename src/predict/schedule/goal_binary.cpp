#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "predict/schedule/check.hpp"
#include "predict/schedule/goal.hpp"

// docs/formats/goal.md has the layout. Numbers are little-endian and not aligned; offsets of ranks count from behind
// the magic number.
namespace spinloom::schedule {
namespace {

constexpr uint64_t magic_number = 4223;
constexpr uint64_t magic_used_up = 2342;
constexpr uint64_t magic_bytes = 8;
constexpr uint64_t head_bytes = magic_bytes + 6;
constexpr uint64_t entry_bytes = 16;  // an entry of the table of ranks
constexpr uint64_t counts_bytes = 8;  // the numbers in front of a rank's roots
constexpr uint64_t record_bytes = 39;
constexpr uint64_t record_bytes_with_handlers = 104;

template <class T>
T load(std::string_view bytes, uint64_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return static_cast<T>(value);
}

template <class T>
void store(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

// A record's fields.
struct Record {
  uint32_t dependency_count;
  uint8_t kind;
  uint32_t peer;
  uint64_t size;
  uint32_t tag;
  uint8_t cpu;
  uint8_t nic;
  std::array<uint32_t, 2> dependents;  // numbers of those that wait for the end, for the start
  std::array<uint32_t, 2> first;       // the begin of these dependents in the appendix

  static Record at(std::string_view bytes, uint64_t at) {
    return {load<uint32_t>(bytes, at),
            load<uint8_t>(bytes, at + 4),
            load<uint32_t>(bytes, at + 5),
            load<uint64_t>(bytes, at + 9),
            load<uint32_t>(bytes, at + 17),
            load<uint8_t>(bytes, at + 21),
            load<uint8_t>(bytes, at + 22),
            {load<uint32_t>(bytes, at + 23), load<uint32_t>(bytes, at + 31)},
            {load<uint32_t>(bytes, at + 27), load<uint32_t>(bytes, at + 35)}};
  }

  void append_to(std::string& out) const {
    store(out, dependency_count);
    store(out, kind);
    store(out, peer);
    store(out, size);
    store(out, tag);
    store(out, cpu);
    store(out, nic);
    for (size_t i = 0; i < 2; ++i) store(out, dependents[i]), store(out, first[i]);
  }
};

// The types that LogGOPSim2 adds. Its converter fills in the fields behind those of 2023 for these types only: a record
// of a send, a receive or a computation has in them whatever lay in memory.
constexpr auto extension_names =
    std::to_array<const char*>({"put", "get", "append", "ctwait", "tput", "tget", "tappend", "gem5calc"});
constexpr uint8_t extension_first = 4;

// The place of a rank's parts in the file.
struct Block {
  uint64_t at = 0;
  uint64_t bytes = 0;
  uint32_t operations = 0;
  uint32_t roots = 0;

  [[nodiscard]] uint64_t records_at() const { return at + counts_bytes + uint64_t{4} * roots; }
};

class BinaryReader {
 public:
  BinaryReader(std::string_view bytes, const Watch& watch) : bytes_(bytes), progress_(watch, "reading the schedule") {}

  Result<Schedule> read() {
    SPL_TRY(read_head());
    Schedule schedule(ranks_);
    blocks_end_ = head_bytes + entry_bytes * ranks_;
    for (rank_ = 0; rank_ < ranks_; ++rank_) {
      SPL_ASSIGN(const Block block, block_of_rank());
      SPL_TRY(find_record_size(block));
      SPL_TRY(progress_.advance(block.operations));
      SPL_ASSIGN(Program program, program_of(schedule, block));
      schedule.intern(rank_, std::move(program));
    }
    return schedule;
  }

 private:
  Status read_head() {
    if (bytes_.size() < magic_bytes) {
      return fail(Code::invalid, "byte 0: expected a magic number of 8 bytes, found ", bytes_.size(), " bytes");
    }
    const auto magic = load<uint64_t>(bytes_, 0);
    if (magic == magic_used_up) {
      return fail(Code::invalid, "byte 0: magic number ", magic_used_up,
                  ": a simulation with --save-mem has used this file up; convert the text again");
    }
    if (magic != magic_number) {
      return fail(Code::invalid, "byte 0: expected magic number ", magic_number, ", found ", magic);
    }
    if (bytes_.size() < head_bytes) {
      return fail(Code::invalid, "byte 8: expected a head of ", head_bytes, " bytes, the file has ", bytes_.size());
    }
    ranks_ = load<uint32_t>(bytes_, magic_bytes);
    cpu_max_ = load<uint8_t>(bytes_, magic_bytes + 4);
    nic_max_ = load<uint8_t>(bytes_, magic_bytes + 5);
    if (const uint64_t room = (bytes_.size() - head_bytes) / entry_bytes; ranks_ > room) {
      return fail(Code::invalid, "byte 8: num_ranks is ", ranks_, ", but the file of ", bytes_.size(),
                  " bytes has room for a table of ", room, " ranks");
    }
    return {};
  }

  // Blocks lie in order of rank, so that no byte is read for two of them.
  Result<Block> block_of_rank() {
    const uint64_t entry_at = head_bytes + entry_bytes * rank_;
    const auto start = load<uint64_t>(bytes_, entry_at);
    const auto end = load<uint64_t>(bytes_, entry_at + 8);
    if (end < start || end > bytes_.size() - magic_bytes || end - start < counts_bytes) {
      return fail(Code::invalid, "byte ", entry_at, ": rank ", rank_, " lies from ", start, " to ", end,
                  " behind the magic number: expected ", counts_bytes, " bytes at least among ",
                  bytes_.size() - magic_bytes);
    }
    Block block{start + magic_bytes, end - start, 0, 0};
    if (block.at < blocks_end_) {
      return fail(Code::invalid, "byte ", entry_at, ": rank ", rank_, " begins at byte ", block.at, ", but ",
                  rank_ == 0 ? "the table of ranks" : "the rank before it", " ends at byte ", blocks_end_);
    }
    blocks_end_ = block.at + block.bytes;
    block.operations = load<uint32_t>(bytes_, block.at);
    block.roots = load<uint32_t>(bytes_, block.at + 4);
    return block;
  }

  // The appendix takes what records leave, if there are that many dependents.
  [[nodiscard]] std::optional<uint64_t> edges_in(const Block& block, uint64_t record_bytes_each) const {
    const uint64_t before = counts_bytes + uint64_t{4} * block.roots + record_bytes_each * block.operations;
    if (before > block.bytes || (block.bytes - before) % 4 != 0) return {};
    const uint64_t edges = (block.bytes - before) / 4;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < block.operations; ++i) {
      const Record record = Record::at(bytes_, block.records_at() + i * record_bytes_each);
      sum += uint64_t{record.dependents[0]} + record.dependents[1];
    }
    if (sum != edges || edges > UINT32_MAX) return {};
    return edges;
  }

  // The first rank that has operations tells the size of records.
  Status find_record_size(const Block& block) {
    if (block.operations > Edge::operations_max) return size_error(block);
    if (record_size_ == 0 && block.operations > 0) {
      record_size_ = !edges_in(block, record_bytes) && edges_in(block, record_bytes_with_handlers)
                         ? record_bytes_with_handlers
                         : record_bytes;
    }
    const auto edges = edges_in(block, record_size_ == 0 ? record_bytes : record_size_);
    if (!edges) return size_error(block);
    edges_ = static_cast<uint32_t>(*edges);
    return {};
  }

  [[nodiscard]] Error size_error(const Block& block) const {
    return fail(Code::invalid, "byte ", block.at, ": rank ", rank_, " has ", block.bytes, " bytes: ", block.operations,
                " operations and ", block.roots, " roots do not fit it, with records of ",
                record_size_ == record_bytes_with_handlers ? record_bytes_with_handlers : record_bytes,
                " bytes and all dependents");
  }

  Result<Program> program_of(Schedule& schedule, const Block& block) {
    const uint64_t appendix_at = block.records_at() + record_size_ * block.operations;
    for (uint32_t number = 0; number < block.operations; ++number) {
      const uint64_t at = block.records_at() + record_size_ * number;
      const Record record = Record::at(bytes_, at);
      SPL_TRY(add_operation(schedule, number, at, record));
      for (const Awaits awaits : {Awaits::end, Awaits::start}) {
        const auto kind = static_cast<size_t>(awaits);
        const uint32_t first = record.first[kind];
        const uint32_t count = record.dependents[kind];
        if (count == 0) continue;
        if (first > edges_ || count > edges_ - first) {
          return fail(Code::invalid, location_of(number, at), "dependents ", first, " to ", uint64_t{first} + count,
                      " of the appendix, which has ", edges_);
        }
        for (uint32_t i = first; i < first + count; ++i) {
          const uint64_t edge_at = appendix_at + uint64_t{4} * i;
          const auto after = load<uint32_t>(bytes_, edge_at);
          if (after >= block.operations) {
            return fail(Code::invalid, location_of(number, edge_at), "operation ", after,
                        " waits for it, but the rank has ", block.operations, " operations");
          }
          builder_.require(after, number, awaits);
        }
      }
    }
    Program program = builder_.take();
    SPL_TRY(check_dependency_counts(program, block));
    return program;
  }

  Status add_operation(Schedule& schedule, uint32_t number, uint64_t at, const Record& record) {
    if (record_size_ == record_bytes_with_handlers) SPL_TRY(check_plain(number, at, record));
    if (record.kind < static_cast<uint8_t>(Kind::send) || record.kind > static_cast<uint8_t>(Kind::compute)) {
      return fail(Code::invalid, location_of(number, at + 4), "expected type 1 (send), 2 (recv) or 3 (calc), found ",
                  uint32_t{record.kind});
    }
    if (record.cpu > cpu_max_ || record.nic > nic_max_) {
      return fail(Code::invalid, location_of(number, at + 21), "cpu ", uint32_t{record.cpu}, " and nic ",
                  uint32_t{record.nic}, ": the head says that the largest are ", uint32_t{cpu_max_}, " and ",
                  uint32_t{nic_max_});
    }
    Shape shape;
    shape.kind = static_cast<Kind>(record.kind);
    shape.size = record.size;
    shape.cpu = record.cpu;
    if (shape.kind == Kind::compute) {
      builder_.add(schedule.intern_shape(shape), 0);
      return {};
    }
    shape.tag = record.tag;
    shape.nic = record.nic;
    builder_.add(schedule.intern_shape(shape), record.peer);
    return {};
  }

  [[nodiscard]] Status check_plain(uint32_t number, uint64_t at, const Record& record) const {
    if (const uint32_t kind = uint32_t{record.kind} - extension_first; kind < extension_names.size()) {
      return fail(Code::unsupported, location_of(number, at + 4), "type ", extension_names[kind],
                  ", which LogGOPSim2 adds to GOAL: only send, recv and calc can be read");
    }
    return {};
  }

  // Checks the counts and the roots, which repeat what the edges say.
  [[nodiscard]] Status check_dependency_counts(const Program& program, const Block& block) const {
    const std::vector<uint32_t> dependency_counts = program.dependency_counts();
    uint32_t root = 0;
    for (uint32_t number = 0; number < block.operations; ++number) {
      const uint64_t at = block.records_at() + record_size_ * number;
      if (const auto stated = load<uint32_t>(bytes_, at); stated != dependency_counts[number]) {
        return fail(Code::invalid, location_of(number, at), "it is said to wait for ", stated, " operations, but ",
                    dependency_counts[number], " have it as a dependent");
      }
      if (dependency_counts[number] > 0) continue;
      const uint64_t root_at = block.at + counts_bytes + uint64_t{4} * root;
      if (root >= block.roots || load<uint32_t>(bytes_, root_at) != number) {
        return fail(Code::invalid, location_of(number, root_at), "it waits for nothing, but is not root ", root, " of ",
                    block.roots, ": roots come in order");
      }
      ++root;
    }
    if (root < block.roots) {
      return fail(Code::invalid, "byte ", block.at + 4, ": rank ", rank_, " has ", block.roots, " roots, but ", root,
                  " operations wait for nothing");
    }
    return {};
  }

  [[nodiscard]] std::string location_of(uint32_t number, uint64_t at) const {
    return text("byte ", at, ": rank ", rank_, ", operation ", number, ": ");
  }

  std::string_view bytes_;
  Progress progress_;
  uint32_t ranks_ = 0;
  uint32_t rank_ = 0;
  uint8_t cpu_max_ = 0;
  uint8_t nic_max_ = 0;
  uint64_t blocks_end_ = 0;  // the end of the last block
  uint64_t record_size_ = 0;  // the bytes of one record; 0: not known yet
  uint32_t edges_ = 0;   // the edges of this rank
  Builder builder_;
};

void append_block(std::string& out, const Schedule& schedule, uint32_t rank) {
  const Program& program = schedule.program(rank);
  const std::vector<uint32_t> dependency_counts = program.dependency_counts();
  store(out, program.size());
  store(out, static_cast<uint32_t>(std::ranges::count(dependency_counts, uint32_t{0})));
  for (uint32_t number = 0; number < program.size(); ++number) {
    if (dependency_counts[number] == 0) store(out, number);
  }
  uint32_t first = 0;
  std::string appendix;
  for (uint32_t number = 0; number < program.size(); ++number) {
    const Operation& operation = program.operations[number];
    const Shape& shape = schedule.shape(operation);
    Record record{dependency_counts[number],
                  static_cast<uint8_t>(shape.kind),
                  schedule.peer(rank, operation),
                  shape.size,
                  shape.tag,
                  static_cast<uint8_t>(shape.cpu),
                  static_cast<uint8_t>(shape.nic),
                  {},
                  {}};
    for (const Awaits awaits : {Awaits::end, Awaits::start}) {
      const auto kind = static_cast<size_t>(awaits);
      record.first[kind] = first;
      for (const Edge edge : program.edges_of(number)) {
        if (edge.awaits() != awaits) continue;
        store(appendix, edge.to());
        ++first;
      }
      record.dependents[kind] = first - record.first[kind];
    }
    record.append_to(out);
  }
  out += appendix;
}

}  // namespace

Status check_sayable_in_goal(const Schedule& schedule, uint32_t rank, uint32_t number) {
  const Kind kind = schedule.shape(schedule.program(rank).operations[number]).kind;
  if (kind > Kind::compute) {
    return fail(Code::unsupported, "rank ", rank, ", operation ", number, ": GOAL's binary form has no ", name_of(kind),
                "; write FILE.goal, whose text has it as an extension");
  }
  for (const Edge edge : schedule.program(rank).edges_of(number)) {
    if (edge.join() == Join::all) continue;
    return fail(Code::unsupported, "rank ", rank, ", operation ", number, ": operation ", edge.to(),
                " waits for it or for others, and GOAL's binary form has no any-of edges; write FILE.goal, whose text "
                "has them as an extension");
  }
  const Shape& shape = schedule.shape(schedule.program(rank).operations[number]);
  if (shape.cpu > UINT8_MAX || shape.nic > UINT8_MAX) {
    return fail(Code::unsupported, "rank ", rank, ", operation ", number, ": cpu ", shape.cpu, " and nic ", shape.nic,
                ": GOAL's binary form has numbers to ", uint32_t{UINT8_MAX},
                "; write FILE.goal, whose text has larger ones");
  }
  return check_sayable_in_text(schedule, rank, number);
}

Status check_sayable_in_text(const Schedule& schedule, uint32_t rank, uint32_t number) {
  const Operation& operation = schedule.program(rank).operations[number];
  const Shape& shape = schedule.shape(operation);
  const std::string place = text("rank ", rank, ", operation ", number, ": ");
  if (shape.kind == Kind::compute && (shape.tag != 0 || shape.nic != 0 || operation.peer != 0)) {
    return fail(Code::unsupported, place, "GOAL has no computation with tag ", shape.tag, ", nic ", shape.nic,
                " and peer ", operation.peer, ": they must be 0");
  }
  if (shape.kind == Kind::arrived && (shape.cpu != 0 || shape.nic != 0 || operation.peer != 0)) {
    return fail(Code::unsupported, place, "GOAL text has no arrival with cpu ", shape.cpu, ", nic ", shape.nic,
                " and peer ", operation.peer, ": they must be 0");
  }
  if (shape.kind > Kind::compute && shape.tag == any) {
    return fail(Code::unsupported, place, "GOAL text has no ", name_of(shape.kind), " with any tag");
  }
  return {};
}

Result<Schedule> read_goal_binary(std::string_view bytes, const Watch& watch) {
  return BinaryReader(bytes, watch).read();
}

Result<std::string> write_goal_binary(const Schedule& schedule) {
  if (schedule.repeats()) return write_goal_binary(schedule.unrolled());
  const Count totals = count(schedule);
  std::string out;
  store(out, magic_number);
  store(out, schedule.ranks());
  store(out, static_cast<uint8_t>(totals.cpu_largest));  // an operation does not fit if this does not
  store(out, static_cast<uint8_t>(totals.nic_largest));
  out.resize(out.size() + entry_bytes * schedule.ranks());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (uint32_t number = 0; number < schedule.program(rank).size(); ++number) {
      SPL_TRY(check_sayable_in_goal(schedule, rank, number));
    }
    std::string entry;
    store(entry, out.size() - magic_bytes);
    append_block(out, schedule, rank);
    store(entry, out.size() - magic_bytes);
    out.replace(head_bytes + entry_bytes * rank, entry_bytes, entry);
  }
  return out;
}

Result<Schedule> read_goal(std::string_view bytes, const Watch& watch) {
  if (bytes.size() >= magic_bytes) {
    const auto magic = load<uint64_t>(bytes, 0);
    if (magic == magic_number || magic == magic_used_up) return read_goal_binary(bytes, watch);
  }
  return read_goal_text(bytes, watch);
}

}  // namespace spinloom::schedule
