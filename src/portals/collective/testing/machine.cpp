#include "portals/collective/testing/machine.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace spinloom::collective::test {
namespace {

constexpr int32_t guard = 0x5afe5afe;

// The cells and operations that have been made so far for one rank.
struct Made {
  struct Written {
    bool is_input = true;
    bool is_certain = true;
    uint32_t by = 0;
    std::vector<uint32_t> readers;
  };
  uint32_t operations = 0;
  std::vector<Written> cells;
  std::vector<bool> is_receive;
};

class Maker {
 public:
  Maker(uint32_t ranks, size_t elements_max, Random& random)
      : random_(random), elements_max_(elements_max), made_(ranks) {
    script_.ranks = ranks;
    script_.cells.resize(ranks);
    script_.windows.assign(ranks, 0);
    script_.sums.assign(ranks, 0);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      script_.inputs.push_back(1 + random.below(3));
      for (size_t cell = 0; cell < script_.inputs[rank]; ++cell) new_cell(rank, any_count());
    }
  }
  Script make(uint32_t count) {
    while (script_.operations.size() < count) add_one();
    return std::move(script_);
  }

 private:
  size_t any_count() {
    if (random_.chance(1, 6)) return 0;
    return random_.chance(1, 6) ? 1 + random_.below(elements_max_) : 1 + random_.below(window_elements);
  }
  size_t new_cell(uint32_t rank, size_t count) {
    script_.cells[rank].push_back(count);
    made_[rank].cells.emplace_back();
    return script_.cells[rank].size() - 1;
  }
  // Picks a cell whose elements are known, nearly always of at most `count_max` elements; the caller checks.
  size_t any_cell(uint32_t rank, size_t count_max) {
    for (;;) {
      const size_t cell = random_.below(script_.cells[rank].size());
      if (made_[rank].cells[cell].is_certain && script_.cells[rank][cell] <= count_max) return cell;
      if (random_.chance(1, 50)) count_max = SIZE_MAX;  // the caller looks
    }
  }
  void reads(Act& one, size_t cell) {
    Made::Written& written = made_[one.rank].cells[cell];
    if (!written.is_input) one.all.push_back(written.by);
    written.readers.push_back(made_[one.rank].operations);
  }
  void writes(Act& one, size_t cell) {
    Made::Written& written = made_[one.rank].cells[cell];
    if (!written.is_input && written.by != made_[one.rank].operations) one.all.push_back(written.by);
    for (const uint32_t reader : written.readers) {
      if (reader != made_[one.rank].operations) one.all.push_back(reader);
    }
    written.is_input = false;
    written.by = made_[one.rank].operations;
    written.readers.clear();
  }
  void fresh(Act& one, size_t count) {
    one.to = new_cell(one.rank, count);
    made_[one.rank].cells[one.to].is_input = false;
    made_[one.rank].cells[one.to].by = made_[one.rank].operations;
  }
  uint32_t add(Act one) {
    Made& made = made_[one.rank];
    if (one.what != Does::receive) {
      for (std::vector<uint32_t>* const list : {&one.all, &one.any}) {
        while (made.operations > 0 && random_.chance(1, 4))
          list->push_back(static_cast<uint32_t>(random_.below(made.operations)));
        if (list == &one.any && !one.any_from.empty()) list->resize(one.any_from.size());
      }
      one.cpu_dependent = random_.chance(1, 8);
    }
    one.number = made.operations++;
    made.is_receive.push_back(one.what == Does::receive);
    script_.operations.push_back(std::move(one));
    return made.operations - 1;
  }
  Act begun(Does what) {
    Act one;
    one.what = what;
    one.rank = static_cast<uint32_t>(random_.below(script_.ranks));
    one.peer = static_cast<uint32_t>(random_.below(script_.ranks));
    return one;
  }

  void add_one() {
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
    Act send = begun(Does::send);
    send.tag = static_cast<uint32_t>(random_.below(3));
    send.from = any_cell(send.rank, SIZE_MAX);
    reads(send, send.from);
    Act receive;
    receive.what = Does::receive;
    receive.rank = send.peer;
    receive.peer = send.rank;
    receive.tag = send.tag;
    const size_t count = script_.cells[send.rank][send.from];
    add(std::move(send));
    fresh(receive, count);
    add(std::move(receive));
  }
  void add_copy() {
    Act copy = begun(Does::copy);
    copy.from = any_cell(copy.rank, SIZE_MAX);
    reads(copy, copy.from);
    fresh(copy, script_.cells[copy.rank][copy.from]);
    add(std::move(copy));
  }
  void add_combine() {
    Act combine = begun(Does::combine);
    combine.from = any_cell(combine.rank, SIZE_MAX);
    const size_t count = script_.cells[combine.rank][combine.from];
    combine.to = any_cell(combine.rank, count);
    if (combine.to == combine.from || script_.cells[combine.rank][combine.to] != count) return;
    reads(combine, combine.from);
    writes(combine, combine.to);
    add(std::move(combine));
  }
  void add_put_and_get() {
    Act put = begun(Does::put);
    put.from = any_cell(put.rank, window_elements);
    if (script_.cells[put.rank][put.from] > window_elements) return;
    reads(put, put.from);
    put.window = script_.windows[put.peer]++;
    Act get;
    get.what = Does::get;
    get.rank = put.rank;
    get.peer = put.peer;
    get.window = put.window;
    const size_t count = script_.cells[put.rank][put.from];
    get.from = put.from;
    get.all.push_back(add(std::move(put)));
    fresh(get, count);
    add(std::move(get));
  }
  void add_atomic() {
    Act atomic = begun(Does::atomic);
    atomic.from = any_cell(atomic.rank, window_elements);
    if (script_.cells[atomic.rank][atomic.from] > window_elements) return;
    reads(atomic, atomic.from);
    atomic.window = script_.sums[atomic.peer]++;
    add(std::move(atomic));
  }
  // Copies the cells of several, one of which must be there.
  void add_any() {
    Act copy = begun(Does::copy);
    Made& made = made_[copy.rank];
    size_t count = 0;
    for (size_t cell = 0; cell < made.cells.size() && copy.any_from.size() < 3; ++cell) {
      const Made::Written& written = made.cells[cell];
      if (written.is_input || !written.is_certain || script_.cells[copy.rank][cell] > window_elements) continue;
      if (random_.chance(1, 2)) continue;
      copy.any_from.push_back(cell);
      copy.any.push_back(written.by);
      count += script_.cells[copy.rank][cell];
    }
    if (copy.any_from.size() < 2) return;
    for (const size_t cell : copy.any_from) made.cells[cell].readers.push_back(made.operations);
    fresh(copy, count);
    made.cells[copy.to].is_certain = false;
    add(std::move(copy));
  }

  Random& random_;
  size_t elements_max_;
  Script script_;
  std::vector<Made> made_;
};

}  // namespace

Cell::Cell(size_t count, uint32_t pieces, Random& random) : count_(count), memory_(count + pieces + 2, guard) {
  size_t at = 1;
  for (size_t left = count; left > 0;) {
    const size_t here = pieces_.size() + 1 >= pieces ? left : 1 + random.below(left);
    pieces_.push_back({reinterpret_cast<uint8_t*>(memory_.data() + at), here * sizeof(int32_t)});
    at += here + 1;
    left -= here;
  }
}

void Cell::fill(const Elements& with) {
  const auto* from = reinterpret_cast<const uint8_t*>(with.data());
  for (const nic::IovecElement& piece : pieces_) {
    std::memcpy(piece.base, from, piece.length);
    from += piece.length;
  }
}

Elements Cell::read() const {
  Elements found(count_);
  auto* to = reinterpret_cast<uint8_t*>(found.data());
  for (const nic::IovecElement& piece : pieces_) {
    std::memcpy(to, piece.base, piece.length);
    to += piece.length;
  }
  return found;
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
  std::vector<std::vector<Elements>> made(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (size_t cell = 0; cell < cells[rank].size(); ++cell) {
      made[rank].emplace_back(cells[rank][cell], garbage);
      if (cell >= inputs[rank]) continue;
      for (size_t i = 0; i < cells[rank][cell]; ++i) made[rank][cell][i] = input(start, rank, cell, i);
    }
  }
  // A receive stands behind its send, with no other operation between them.
  const Act* before = nullptr;
  for (const Act& one : operations) {
    std::vector<Elements>& own = made[one.rank];
    visit(one, own);
    if (one.what == Does::receive) own[one.to] = made[before->rank][before->from];
    if (one.what == Does::get) own[one.to] = own[one.from];
    if (one.what == Does::copy && one.any_from.empty()) own[one.to] = own[one.from];
    if (one.what == Does::copy && !one.any_from.empty()) {
      own[one.to].clear();
      for (const size_t cell : one.any_from) own[one.to].insert(own[one.to].end(), own[cell].begin(), own[cell].end());
    }
    if (one.what == Does::combine) {
      for (size_t i = 0; i < own[one.to].size(); ++i) own[one.to][i] += own[one.from][i];
    }
    before = &one;
  }
  return made;
}

std::vector<std::vector<Elements>> Script::play(uint64_t start, Input input) const {
  return play_with(start, input, [](const Act&, const std::vector<Elements>&) {});
}

Script::Places Script::play_places(uint64_t start, Input input, uint32_t rank) const {
  Places places;
  std::ignore = play_with(start, input, [&](const Act& one, const std::vector<Elements>& own) {
    if (one.peer != rank || (one.what != Does::put && one.what != Does::atomic)) return;
    auto& to = one.what == Does::put ? places.windows : places.sums;
    for (size_t i = 0; i < own[one.from].size(); ++i) {
      to.emplace_back(one.window * window_elements + i, own[one.from][i]);
    }
  });
  return places;
}

}  // namespace spinloom::collective::test
