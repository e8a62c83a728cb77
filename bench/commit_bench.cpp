// commit_bench - host time of creating, committing and freeing datatypes, in ns a node or list entry: best of several
// rounds, because the machine is shared. The rows grow by factors of ten: what is O(entries) stays flat. The last rows
// commit a type while many others are alive, and one whose blob another type has already.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "memory/layout/committed.hpp"
#include "memory/layout/type.hpp"

namespace {

using namespace spinloom;
using namespace spinloom::layout;

// The benchmark's own types are right; an error is a bug and throws.
template <class T>
T value_of(Result<T> result) {
  return std::move(result.value());
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Times {
  double create = 1e18;
  double commit = 1e18;
  double free = 1e18;
};

template <class Make>
Times measure(int rounds, const Make& make) {
  Times best;
  for (int round = 0; round < rounds; ++round) {
    const double start = now_ns();
    auto* const type = new Type(make());
    const double created = now_ns();
    auto* const layout = new Committed(value_of(Committed::commit(*type)));
    const double committed = now_ns();
    delete type;
    delete layout;
    const double freed = now_ns();
    best.create = std::min(best.create, created - start);
    best.commit = std::min(best.commit, committed - created);
    best.free = std::min(best.free, freed - committed);
  }
  return best;
}

void print_row(const std::string& name, int64_t entries, const Times& times) {
  const auto entry_count = static_cast<double>(entries);
  std::printf("%-44s %9lld %9.2f %9.2f %9.2f %12.3f\n", name.c_str(), static_cast<long long>(entries),
              times.create / entry_count, times.commit / entry_count, times.free / entry_count, times.commit / 1e6);
}

struct Lists {
  std::vector<int64_t> displacements;
  std::vector<int64_t> lengths;
};

// Blocks of 1 to 4 elements with gaps, in rising order; shuffled: in any order.
Lists random_blocks(int64_t count, bool shuffled) {
  Random random(1, "commit_bench");
  Lists lists;
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = random.between(1, 4);
    lists.displacements.push_back(at);
    lists.lengths.push_back(length);
    at += length + random.between(1, 4);
  }
  if (shuffled) random.shuffle(lists.displacements);
  return lists;
}

Type nested_vectors(int64_t depth) {
  Type type = value_of(primitive("double"));
  for (int64_t level = 0; level < depth; ++level) type = value_of(hvector(2, 1, int64_t{24} << (2 * level), type));
  return type;
}

Type struct_of(int64_t members, bool equal) {
  const Type pair = value_of(vector(3, 1, 2, value_of(primitive("int"))));
  const Type triple = value_of(vector(3, 2, 3, value_of(primitive("short"))));
  std::vector<int64_t> at;
  for (int64_t i = 0; i < members; ++i) at.push_back(64 * i + 4 * (i % 3));
  std::vector<Type> children;
  for (int64_t i = 0; i < members; ++i) children.push_back(equal || i % 2 == 0 ? pair : triple);
  return value_of(structure(std::move(at), std::vector<int64_t>(static_cast<size_t>(members), 1), std::move(children)));
}

void measure_shapes() {
  const Type element = value_of(primitive("double"));
  for (int64_t count = 1'000; count <= 1'000'000; count *= 10) {
    const int rounds = static_cast<int>(std::clamp<int64_t>(20'000'000 / count, 9, 2000));
    for (const bool shuffled : {false, true}) {
      const Lists lists = random_blocks(count, shuffled);
      print_row(shuffled ? "indexed, shuffled" : "indexed", count,
                measure(rounds, [&] { return value_of(indexed(lists.displacements, lists.lengths, element)); }));
    }
    const Lists lists = random_blocks(count, true);
    print_row("idxblock, shuffled", count,
              measure(rounds, [&] { return value_of(indexed_block(1, lists.displacements, element)); }));
    const Type child = value_of(vector(3, 1, 2, element));
    print_row("indexed of vectors", count,
              measure(rounds, [&] { return value_of(indexed(lists.displacements, lists.lengths, child)); }));
    print_row("struct, one type", count, measure(rounds, [&] { return struct_of(count, true); }));
    print_row("struct, two types", count, measure(rounds, [&] { return struct_of(count, false); }));
  }
  for (const int64_t depth : {4, 8, 15})
    print_row("nested hvectors", depth, measure(2000, [&] { return nested_vectors(depth); }));
  print_row("vector", 1, measure(2000, [&] { return value_of(vector(100, 2, 5, element)); }));
}

void measure_many_alive() {
  const Type element = value_of(primitive("double"));
  std::vector<Committed> alive;
  for (const size_t count : {0, 1'000, 10'000, 100'000}) {
    while (alive.size() < count) {
      alive.push_back(
          value_of(Committed::commit(value_of(vector(static_cast<int64_t>(alive.size()) + 2, 2, 5, element)))));
    }
    print_row("vector, with " + std::to_string(count) + " types alive", 1,
              measure(2000, [&] { return value_of(vector(100, 3, 5, element)); }));
  }
  const Lists lists = random_blocks(1'000'000, false);
  const auto make = [&] { return value_of(indexed(lists.displacements, lists.lengths, element)); };
  alive.push_back(value_of(Committed::commit(make())));
  print_row("indexed, its blob is shared", 1'000'000, measure(20, make));
}

}  // namespace

int main() {
  std::printf("%-44s %9s %9s %9s %9s %12s\n", "datatype", "entries", "create", "commit", "free", "commit");
  std::printf("%-44s %9s %9s %9s %9s %12s\n", "", "", "ns/entry", "ns/entry", "ns/entry", "ms");
  measure_shapes();
  measure_many_alive();
  return 0;
}
