// Schedule - who does what after what: for each rank a graph of operations.
//
// Contract: a Program is the graph of a rank; ranks with the same graph share one. Operations are numbered from 0 in
//   the order in which they were added. A Builder makes a Program, intern() gives it to ranks. A Program may be done
//   several times, in passes: operation n of pass p is number p * operations + n, and an edge to `operations` + n leads
//   to operation n of the next pass, or nowhere in the last one; with several passes all edges go forward.
// Invariants: (1) an edge goes from an operation to one that waits for it: for its end, or for its start only; an
//   operation begins when all that its all-of edges wait for has come, and one of its any-of edges, if it has some; (2)
//   of the edges of an operation those that wait for its end come first, and then those that wait for its start, both
//   in the order in which they were added; (3) an operation takes 12 B and an edge 4 B, in each Program once, however
//   many ranks have it and however many passes there are; (4) layouts cost a schedule without them nothing; (5)
//   Programs may lie in a mapped file, which the Schedule and its copies keep.
// Threads: plain values. Time: sizes of computations are in the unit of the schedule's author; the schedule has no
//   clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "predict/schedule/values.hpp"

namespace spinloom::schedule {

inline constexpr uint32_t any = UINT32_MAX;  // every peer or every tag

// The one-sided ones are done in a peer's memory without its CPU: put, get and atomic move one way, a fetching atomic
// moves its operand there and the old value back. Each counts at its target, under its tag, when it has been done
// there; an `arrived` ends when its rank's counter of its tag has reached its size.
enum class Kind : uint8_t { send = 1, receive = 2, compute = 3, put, get, atomic, fetch, arrived };
inline constexpr uint32_t kinds = 9;  // the largest Kind plus 1

[[nodiscard]] constexpr bool is_one_sided(Kind kind) { return kind >= Kind::put && kind <= Kind::fetch; }
[[nodiscard]] constexpr bool has_peer(Kind kind) { return kind != Kind::compute && kind != Kind::arrived; }
// The kind as a word of the text.
[[nodiscard]] const char* name_of(Kind kind);

// The meaning of an operation's peer: the rank itself, or a distance to add to the own rank, modulo the number of
// ranks.
enum class Peer : uint8_t { absolute, relative };

// The properties that operations have in common. A computation has no tag and no NIC: they are 0, and so is its
// operation's peer. An `arrived` has only a size and a tag.
struct Shape {
  uint64_t size = 0;  // bytes of a message, time of a computation, what a counter must reach
  uint32_t tag = 0;
  Kind kind = Kind::compute;
  Peer peer = Peer::absolute;
  uint32_t cpu = 0;
  uint32_t nic = 0;
  bool operator==(const Shape&) const = default;
};

inline constexpr uint32_t contiguous = UINT32_MAX;  // the bytes lie in one block: in place of a layout's number

// The layouts of a transfer's bytes, by numbers of Layouts: in the memory of the operation's own rank, and for a
// one-sided operation in its target's. The peer of a send has a receive, which gives the other layout.
struct TransferLayouts {
  uint32_t local = contiguous;
  uint32_t remote = contiguous;
  bool operator==(const TransferLayouts&) const = default;
};

// Elements of a datatype, as docs/formats/layout.md writes one down. What is in `blob` is not looked at here.
struct Layout {
  std::string blob;
  int64_t count = 1;
  uint64_t bytes = 0;  // packed, of all elements
  bool operator==(const Layout&) const = default;
};

struct Operation {
  uint32_t shape = 0;  // the number of a Shape with its TransferLayouts
  uint32_t peer = 0;
  uint32_t edges_end = 0;  // its edges begin where those of the operation before it end
  bool operator==(const Operation&) const = default;
};

enum class Awaits : uint8_t { end, start };
// An operation needs all of what it waits for, or only the first to come of several.
enum class Join : uint8_t { all, first };

class Edge {
 public:
  static constexpr uint32_t operations_max = UINT32_MAX >> 2;
  Edge() = default;
  Edge(uint32_t to, Awaits awaits, Join join = Join::all)
      : word_(to << 2 | static_cast<uint32_t>(join) << 1 | static_cast<uint32_t>(awaits)) {}
  [[nodiscard]] uint32_t to() const { return word_ >> 2; }
  [[nodiscard]] Awaits awaits() const { return static_cast<Awaits>(word_ & 1); }
  [[nodiscard]] Join join() const { return static_cast<Join>(word_ >> 1 & 1); }
  [[nodiscard]] bool is(Awaits awaits, Join join) const {
    return (word_ & 3) == (static_cast<uint32_t>(join) << 1 | static_cast<uint32_t>(awaits));
  }
  bool operator==(const Edge&) const = default;

 private:
  uint32_t word_ = 0;
};

struct Program {
  Values<Operation> operations;  // the operations of one pass
  Values<Edge> edges;
  uint32_t passes = 1;  // the number of times that it is done

  // From here on, everything is about all passes unless the comment says otherwise.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(operations.size()) * passes; }
  [[nodiscard]] const Operation& operation(uint32_t number) const { return operations[number_in_pass(number)]; }
  [[nodiscard]] uint32_t number_in_pass(uint32_t number) const {
    return passes == 1 ? number : number % static_cast<uint32_t>(operations.size());
  }
  // Calls visit(Edge) for each edge of operation `number`.
  template <class Take>
  void for_each_edge(uint32_t number, Take&& visit) const {
    const uint32_t in_pass = number_in_pass(number);
    const std::span<const Edge> edges_in_pass = edges_of(in_pass);
    if (passes == 1) {
      for (const Edge& edge : edges_in_pass) visit(edge);
      return;
    }
    for (const Edge& edge : edges_in_pass) {
      const uint64_t to = uint64_t{number} - in_pass + edge.to();
      if (to < size()) visit(Edge(static_cast<uint32_t>(to), edge.awaits(), edge.join()));
    }
  }
  // Returns the edges of operation `number` of one pass, as they are stored.
  [[nodiscard]] std::span<const Edge> edges_of(uint32_t number) const {
    const uint32_t first = number == 0 ? 0 : operations[number - 1].edges_end;
    return {edges.data() + first, edges.data() + operations[number].edges_end};
  }
  // Returns for each operation the number of dependencies that must come before it begins: its all-of edges, and one
  // for all of its any-of edges.
  [[nodiscard]] std::vector<uint32_t> dependency_counts() const;
  // Returns for each operation true if it has any-of edges; empty if no operation has any.
  [[nodiscard]] std::vector<bool> have_any_edges() const;
  // True if each edge goes to an operation with a larger number, so that nothing waits for itself.
  [[nodiscard]] bool is_forward() const;
  // Returns this program written out: all passes as one, so that `times` is 1.
  [[nodiscard]] Program unrolled() const;
  [[nodiscard]] std::vector<Operation> unrolled_operations() const;
  [[nodiscard]] std::vector<Edge> unrolled_edges() const;
  bool operator==(const Program&) const = default;
};

class Schedule {
 public:
  // The parts of a Schedule, for its file form. `transfer_layouts` is empty or has one for each Shape.
  struct Parts {
    std::vector<uint32_t> program_of;
    std::vector<Program> programs;
    std::vector<Shape> shapes;
    std::vector<TransferLayouts> transfer_layouts;
    std::vector<Layout> layouts;
    std::shared_ptr<const void> source;  // keeps the memory of Programs that have none of their own
  };

  Schedule() = default;
  explicit Schedule(Parts parts);  // the numbers in `parts` must be valid
  explicit Schedule(uint32_t ranks) : program_of_(ranks, 0) { add_program({}); }  // all without operations

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(program_of_.size()); }
  [[nodiscard]] const Program& program(uint32_t rank) const { return programs_[program_of_[rank]]; }
  // Ranks that have the same number have the same Program.
  [[nodiscard]] uint32_t number_of_program(uint32_t rank) const { return program_of_[rank]; }
  [[nodiscard]] const std::vector<Program>& programs() const { return programs_; }
  [[nodiscard]] const std::vector<Shape>& shapes() const { return shapes_; }
  [[nodiscard]] const Shape& shape(const Operation& operation) const { return shapes_[operation.shape]; }
  [[nodiscard]] TransferLayouts transfer_layouts(uint32_t shape) const {
    return transfer_layouts_.empty() ? TransferLayouts() : transfer_layouts_[shape];
  }
  [[nodiscard]] TransferLayouts transfer_layouts(const Operation& operation) const {
    return transfer_layouts(operation.shape);
  }
  // Returns the TransferLayouts of all Shapes; empty if no transfer has a layout.
  [[nodiscard]] const std::vector<TransferLayouts>& all_transfer_layouts() const { return transfer_layouts_; }
  [[nodiscard]] const std::vector<Layout>& layouts() const { return layouts_; }
  // Returns the rank that `rank` sends to or receives from; `any` stays.
  [[nodiscard]] uint32_t peer(uint32_t rank, const Operation& operation) const {
    if (operation.peer == any || shape(operation).peer == Peer::absolute) return operation.peer;
    return static_cast<uint32_t>((uint64_t{rank} + operation.peer) % ranks());
  }
  // Returns a description for messages: "send of 8 B to 1 with tag 7".
  [[nodiscard]] std::string describe(uint32_t rank, const Operation& operation) const;
  [[nodiscard]] uint64_t operations() const;  // the operations of all ranks
  [[nodiscard]] bool repeats() const;  // a Program has several passes
  [[nodiscard]] Schedule unrolled() const;  // all Programs in one pass
  [[nodiscard]] uint64_t memory_bytes() const;  // the bytes that it takes in memory

  // Returns the number of a Shape, which is kept once; the same Shape with other TransferLayouts has another number.
  [[nodiscard]] uint32_t intern_shape(const Shape& shape, TransferLayouts layouts = {});
  // Returns the number of a Layout, which is kept once.
  [[nodiscard]] uint32_t intern_layout(const Layout& layout);
  // Gives `rank` a Program; one that another rank has, with the same peers or with peers as far away, is kept once. Its
  // peers are absolute.
  void intern(uint32_t rank, Program program);
  // Gives several ranks a Program as it is: its peers may be relative.
  void intern_for(std::span<const uint32_t> ranks, Program program);

 private:
  void index_shapes(size_t slots);
  [[nodiscard]] size_t slot_of(const Shape& shape, TransferLayouts layouts) const;
  [[nodiscard]] const uint32_t* find_program(const Program& program);
  uint32_t add_program(Program program);
  [[nodiscard]] bool make_distances(uint32_t rank, std::vector<Operation>& operations) const;
  void make_relative(std::vector<Operation>& operations);
  void index_programs();

  std::vector<uint32_t> program_of_;
  std::vector<Program> programs_;
  std::vector<Shape> shapes_;
  std::vector<TransferLayouts> transfer_layouts_;  // one for each Shape; empty: none has a layout
  std::vector<Layout> layouts_;
  std::map<std::pair<std::string, int64_t>, uint32_t> layout_numbers_;
  std::vector<uint32_t> shape_slots_;  // the numbers of Shapes by hash; at most half of the slots are taken
  std::unordered_multimap<uint64_t, uint32_t> programs_by_hash_;  // the first `hashed_` Programs
  uint32_t hashed_ = 0;
  // Some Programs were kept with absolute peers because they were the first. These are the hashes of what they are with
  // distances.
  std::unordered_set<uint64_t> distance_hashes_;
  std::shared_ptr<const void> source_;
};

// Makes the Program of one rank.
class Builder {
 public:
  // Returns the operation's number.
  uint32_t add(uint32_t shape, uint32_t peer);
  // `after` waits for `before`; size() at the end, and more, are operations of the next pass.
  void require(uint32_t after, uint32_t before, Awaits awaits, Join join = Join::all);
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(operations_.size()); }
  // Leaves the Builder empty.
  [[nodiscard]] Program take(uint32_t passes = 1);

 private:
  struct Requirement {
    uint32_t before;
    Edge edge;
  };
  std::vector<Operation> operations_;
  std::vector<Requirement> requirements_;
};

}  // namespace spinloom::schedule
