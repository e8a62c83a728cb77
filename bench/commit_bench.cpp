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
T take(Result<T> result) {
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
    auto* const layout = new Committed(take(Committed::commit(*type)));
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

void row(const std::string& name, int64_t entries, const Times& times) {
  const auto each = static_cast<double>(entries);
  std::printf("%-44s %9lld %9.2f %9.2f %9.2f %12.3f\n", name.c_str(), static_cast<long long>(entries),
              times.create / each, times.commit / each, times.free / each, times.commit / 1e6);
}

struct Lists {
  std::vector<int64_t> displacements;
  std::vector<int64_t> lengths;
};

// Blocks of 1 to 4 elements with gaps, in rising order; shuffled: in any order.
Lists blocks(int64_t count, bool shuffled) {
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

Type nested(int64_t depth) {
  Type type = take(primitive("double"));
  for (int64_t level = 0; level < depth; ++level) type = take(hvector(2, 1, int64_t{24} << (2 * level), type));
  return type;
}

Type struct_of(int64_t members, bool equal) {
  const Type pair = take(vector(3, 1, 2, take(primitive("int"))));
  const Type triple = take(vector(3, 2, 3, take(primitive("short"))));
  std::vector<int64_t> at;
  for (int64_t i = 0; i < members; ++i) at.push_back(64 * i + 4 * (i % 3));
  std::vector<Type> children;
  for (int64_t i = 0; i < members; ++i) children.push_back(equal || i % 2 == 0 ? pair : triple);
  return take(structure(std::move(at), std::vector<int64_t>(static_cast<size_t>(members), 1), std::move(children)));
}

void shapes() {
  const Type element = take(primitive("double"));
  for (int64_t count = 1'000; count <= 1'000'000; count *= 10) {
    const int rounds = static_cast<int>(std::clamp<int64_t>(20'000'000 / count, 9, 2000));
    for (const bool shuffled : {false, true}) {
      const Lists lists = blocks(count, shuffled);
      row(shuffled ? "indexed, shuffled" : "indexed", count,
          measure(rounds, [&] { return take(indexed(lists.displacements, lists.lengths, element)); }));
    }
    const Lists lists = blocks(count, true);
    row("idxblock, shuffled", count,
        measure(rounds, [&] { return take(indexed_block(1, lists.displacements, element)); }));
    const Type child = take(vector(3, 1, 2, element));
    row("indexed of vectors", count,
        measure(rounds, [&] { return take(indexed(lists.displacements, lists.lengths, child)); }));
    row("struct, one type", count, measure(rounds, [&] { return struct_of(count, true); }));
    row("struct, two types", count, measure(rounds, [&] { return struct_of(count, false); }));
  }
  for (const int64_t depth : {4, 8, 15}) row("nested hvectors", depth, measure(2000, [&] { return nested(depth); }));
  row("vector", 1, measure(2000, [&] { return take(vector(100, 2, 5, element)); }));
}

void many_alive() {
  const Type element = take(primitive("double"));
  std::vector<Committed> alive;
  for (const size_t count : {0, 1'000, 10'000, 100'000}) {
    while (alive.size() < count) {
      alive.push_back(take(Committed::commit(take(vector(static_cast<int64_t>(alive.size()) + 2, 2, 5, element)))));
    }
    row("vector, with " + std::to_string(count) + " types alive", 1,
        measure(2000, [&] { return take(vector(100, 3, 5, element)); }));
  }
  const Lists lists = blocks(1'000'000, false);
  const auto make = [&] { return take(indexed(lists.displacements, lists.lengths, element)); };
  alive.push_back(take(Committed::commit(make())));
  row("indexed, its blob is shared", 1'000'000, measure(20, make));
}

}  // namespace

int main() {
  std::printf("%-44s %9s %9s %9s %9s %12s\n", "datatype", "entries", "create", "commit", "free", "commit");
  std::printf("%-44s %9s %9s %9s %9s %12s\n", "", "", "ns/entry", "ns/entry", "ns/entry", "ms");
  shapes();
  many_alive();
  return 0;
}
