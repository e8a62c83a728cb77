#include "portals/collective/testing/machine.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace spinloom::collective::test {
namespace {

constexpr int32_t guard = 0x5afe5afe;

// The cells and operations that have been made so far for one rank.
struct RankProgress {
  struct CellState {
    bool is_input = true;
    bool is_certain = true;
    uint32_t writer = 0;
    std::vector<uint32_t> readers;
  };
  uint32_t operations = 0;
  std::vector<CellState> cells;
  std::vector<bool> is_receive;
};

class Maker {
 public:
  Maker(uint32_t ranks, size_t elements_max, Random& random)
      : random_(random), elements_max_(elements_max), progress_(ranks) {
    script_.ranks = ranks;
    script_.cells.resize(ranks);
    script_.windows.assign(ranks, 0);
    script_.sums.assign(ranks, 0);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      script_.inputs.push_back(1 + random.below(3));
      for (size_t cell = 0; cell < script_.inputs[rank]; ++cell) new_cell(rank, random_count());
    }
  }
  Script make(uint32_t count) {
    while (script_.operations.size() < count) add_random();
    return std::move(script_);
  }

 private:
  size_t random_count() {
    if (random_.chance(1, 6)) return 0;
    return random_.chance(1, 6) ? 1 + random_.below(elements_max_) : 1 + random_.below(window_elements);
  }
  size_t new_cell(uint32_t rank, size_t count) {
    script_.cells[rank].push_back(count);
    progress_[rank].cells.emplace_back();
    return script_.cells[rank].size() - 1;
  }
  // Picks a cell whose elements are known, nearly always of at most `count_max` elements; the caller checks.
  size_t random_cell(uint32_t rank, size_t count_max) {
    for (;;) {
      const size_t cell = random_.below(script_.cells[rank].size());
      if (progress_[rank].cells[cell].is_certain && script_.cells[rank][cell] <= count_max) return cell;
      if (random_.chance(1, 50)) count_max = SIZE_MAX;  // the caller looks
    }
  }
  void note_read(ScriptOperation& operation, size_t cell) {
    RankProgress::CellState& state = progress_[operation.rank].cells[cell];
    if (!state.is_input) operation.all.push_back(state.writer);
    state.readers.push_back(progress_[operation.rank].operations);
  }
  void note_write(ScriptOperation& operation, size_t cell) {
    RankProgress::CellState& state = progress_[operation.rank].cells[cell];
    if (!state.is_input && state.writer != progress_[operation.rank].operations) operation.all.push_back(state.writer);
    for (const uint32_t reader : state.readers) {
      if (reader != progress_[operation.rank].operations) operation.all.push_back(reader);
    }
    state.is_input = false;
    state.writer = progress_[operation.rank].operations;
    state.readers.clear();
  }
  void write_new_cell(ScriptOperation& operation, size_t count) {
    operation.to = new_cell(operation.rank, count);
    progress_[operation.rank].cells[operation.to].is_input = false;
    progress_[operation.rank].cells[operation.to].writer = progress_[operation.rank].operations;
  }
  uint32_t add(ScriptOperation operation) {
    RankProgress& progress = progress_[operation.rank];
    if (operation.kind != VertexKind::receive) {
      for (std::vector<uint32_t>* const list : {&operation.all, &operation.any}) {
        while (progress.operations > 0 && random_.chance(1, 4))
          list->push_back(static_cast<uint32_t>(random_.below(progress.operations)));
        if (list == &operation.any && !operation.any_from.empty()) list->resize(operation.any_from.size());
      }
      operation.cpu_dependent = random_.chance(1, 8);
    }
    operation.number = progress.operations++;
    progress.is_receive.push_back(operation.kind == VertexKind::receive);
    script_.operations.push_back(std::move(operation));
    return progress.operations - 1;
  }
  ScriptOperation new_operation(VertexKind kind) {
    ScriptOperation operation;
    operation.kind = kind;
    operation.rank = static_cast<uint32_t>(random_.below(script_.ranks));
    operation.peer = static_cast<uint32_t>(random_.below(script_.ranks));
    return operation;
  }

  void add_random() {
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2: return add_message();
      case 3: return add_copy();
      case 4: return add_combine();
      case 5: return add_put_and_get();
      case 6: return add_atomic();
      default: return add_any();
    }
  }
  void add_message() {
    ScriptOperation send = new_operation(VertexKind::send);
    send.tag = static_cast<uint32_t>(random_.below(3));
    send.from = random_cell(send.rank, SIZE_MAX);
    note_read(send, send.from);
    ScriptOperation receive;
    receive.kind = VertexKind::receive;
    receive.rank = send.peer;
    receive.peer = send.rank;
    receive.tag = send.tag;
    const size_t count = script_.cells[send.rank][send.from];
    add(std::move(send));
    write_new_cell(receive, count);
    add(std::move(receive));
  }
  void add_copy() {
    ScriptOperation copy = new_operation(VertexKind::copy);
    copy.from = random_cell(copy.rank, SIZE_MAX);
    note_read(copy, copy.from);
    write_new_cell(copy, script_.cells[copy.rank][copy.from]);
    add(std::move(copy));
  }
  void add_combine() {
    ScriptOperation combine = new_operation(VertexKind::combine);
    combine.from = random_cell(combine.rank, SIZE_MAX);
    const size_t count = script_.cells[combine.rank][combine.from];
    combine.to = random_cell(combine.rank, count);
    if (combine.to == combine.from || script_.cells[combine.rank][combine.to] != count) return;
    note_read(combine, combine.from);
    note_write(combine, combine.to);
    add(std::move(combine));
  }
  void add_put_and_get() {
    ScriptOperation put = new_operation(VertexKind::put);
    put.from = random_cell(put.rank, window_elements);
    if (script_.cells[put.rank][put.from] > window_elements) return;
    note_read(put, put.from);
    put.window = script_.windows[put.peer]++;
    ScriptOperation get;
    get.kind = VertexKind::get;
    get.rank = put.rank;
    get.peer = put.peer;
    get.window = put.window;
    const size_t count = script_.cells[put.rank][put.from];
    get.from = put.from;
    get.all.push_back(add(std::move(put)));
    write_new_cell(get, count);
    add(std::move(get));
  }
  void add_atomic() {
    ScriptOperation atomic = new_operation(VertexKind::atomic);
    atomic.from = random_cell(atomic.rank, window_elements);
    if (script_.cells[atomic.rank][atomic.from] > window_elements) return;
    note_read(atomic, atomic.from);
    atomic.window = script_.sums[atomic.peer]++;
    add(std::move(atomic));
  }
  // Copies the cells of several, one of which must be there.
  void add_any() {
    ScriptOperation copy = new_operation(VertexKind::copy);
    RankProgress& progress = progress_[copy.rank];
    size_t count = 0;
    for (size_t cell = 0; cell < progress.cells.size() && copy.any_from.size() < 3; ++cell) {
      const RankProgress::CellState& state = progress.cells[cell];
      if (state.is_input || !state.is_certain || script_.cells[copy.rank][cell] > window_elements) continue;
      if (random_.chance(1, 2)) continue;
      copy.any_from.push_back(cell);
      copy.any.push_back(state.writer);
      count += script_.cells[copy.rank][cell];
    }
    if (copy.any_from.size() < 2) return;
    for (const size_t cell : copy.any_from) progress.cells[cell].readers.push_back(progress.operations);
    write_new_cell(copy, count);
    progress.cells[copy.to].is_certain = false;
    add(std::move(copy));
  }

  Random& random_;
  size_t elements_max_;
  Script script_;
  std::vector<RankProgress> progress_;
};

}  // namespace

Cell::Cell(size_t count, uint32_t pieces, Random& random) : count_(count), memory_(count + pieces + 2, guard) {
  size_t at = 1;
  for (size_t left = count; left > 0;) {
    const size_t piece_elements = pieces_.size() + 1 >= pieces ? left : 1 + random.below(left);
    pieces_.push_back({reinterpret_cast<uint8_t*>(memory_.data() + at), piece_elements * sizeof(int32_t)});
    at += piece_elements + 1;
    left -= piece_elements;
  }
}

void Cell::fill(const Elements& elements) {
  const auto* from = reinterpret_cast<const uint8_t*>(elements.data());
  for (const nic::IovecElement& piece : pieces_) {
    std::memcpy(piece.base, from, piece.length);
    from += piece.length;
  }
}

Elements Cell::read() const {
  Elements elements(count_);
  auto* to = reinterpret_cast<uint8_t*>(elements.data());
  for (const nic::IovecElement& piece : pieces_) {
    std::memcpy(to, piece.base, piece.length);
    to += piece.length;
  }
  return elements;
}

bool Cell::guards_are_whole() const {
  Elements rest = memory_;
  for (const nic::IovecElement& piece : pieces_) {
    const auto at =
        static_cast<size_t>(piece.base - reinterpret_cast<const uint8_t*>(memory_.data())) / sizeof(int32_t);
    std::fill_n(rest.begin() + static_cast<ptrdiff_t>(at), piece.length / sizeof(int32_t), guard);
  }
  return std::ranges::all_of(rest, [](int32_t element) { return element == guard; });
}

Script Script::random(uint32_t ranks, uint32_t count, size_t elements_max, Random& random) {
  return Maker(ranks, elements_max, random).make(count);
}

template <class Visit>
std::vector<std::vector<Elements>> Script::play_with(uint64_t start, Input input, const Visit& visit) const {
  std::vector<std::vector<Elements>> elements(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (size_t cell = 0; cell < cells[rank].size(); ++cell) {
      elements[rank].emplace_back(cells[rank][cell], garbage);
      if (cell >= inputs[rank]) continue;
      for (size_t i = 0; i < cells[rank][cell]; ++i) elements[rank][cell][i] = input(start, rank, cell, i);
    }
  }
  // A receive stands behind its send, with no other operation between them.
  const ScriptOperation* before = nullptr;
  for (const ScriptOperation& operation : operations) {
    std::vector<Elements>& own = elements[operation.rank];
    visit(operation, own);
    if (operation.kind == VertexKind::receive) own[operation.to] = elements[before->rank][before->from];
    if (operation.kind == VertexKind::get) own[operation.to] = own[operation.from];
    if (operation.kind == VertexKind::copy && operation.any_from.empty()) own[operation.to] = own[operation.from];
    if (operation.kind == VertexKind::copy && !operation.any_from.empty()) {
      own[operation.to].clear();
      for (const size_t cell : operation.any_from)
        own[operation.to].insert(own[operation.to].end(), own[cell].begin(), own[cell].end());
    }
    if (operation.kind == VertexKind::combine) {
      for (size_t i = 0; i < own[operation.to].size(); ++i) own[operation.to][i] += own[operation.from][i];
    }
    before = &operation;
  }
  return elements;
}

std::vector<std::vector<Elements>> Script::play(uint64_t start, Input input) const {
  return play_with(start, input, [](const ScriptOperation&, const std::vector<Elements>&) {});
}

Script::Places Script::play_places(uint64_t start, Input input, uint32_t rank) const {
  Places places;
  std::ignore = play_with(start, input, [&](const ScriptOperation& operation, const std::vector<Elements>& own) {
    if (operation.peer != rank || (operation.kind != VertexKind::put && operation.kind != VertexKind::atomic)) return;
    auto& to = operation.kind == VertexKind::put ? places.windows : places.sums;
    for (size_t i = 0; i < own[operation.from].size(); ++i) {
      to.emplace_back(operation.window * window_elements + i, own[operation.from][i]);
    }
  });
  return places;
}

}  // namespace spinloom::collective::test
