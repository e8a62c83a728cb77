// A C++ program under libspinloom-heap.so: blocks of all sizes and kinds, in threads, moved, aligned, zeroed, forked.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

static int wrong = 0;
static void check(bool good, const char* what) {
  if (good) return;
  ++wrong;
  std::printf("%s\n", what);
}

static bool in_heap(const void* block) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) != 2) continue;
    const auto at = reinterpret_cast<unsigned long long>(block);
    if (at >= begin && at < end) return line.find("memfd:spinloom-heap") != std::string::npos;
  }
  return false;
}

static void work(unsigned seed) {
  std::vector<std::vector<unsigned char>> kept(16);
  for (int i = 0; i < 3000; ++i) {
    seed = seed * 1664525u + 1013904223u;
    auto& one = kept[seed >> 28];
    for (const unsigned char letter : one) {
      if (letter != one.front()) return check(false, "a block that somebody else wrote");
    }
    one.assign((seed >> 8) % 300'000, static_cast<unsigned char>(seed));
  }
}

int main() {
  void* const large = std::malloc(1 << 20);
  void* const small = std::malloc(100);
  check(in_heap(large), "a large block is not in the heap");
  check(!in_heap(small), "a small one is");
  check(malloc_usable_size(large) >= 1 << 20, "malloc_usable_size");
  std::memset(large, 5, 1 << 20);
  std::free(large);
  auto* const zeros = static_cast<unsigned char*>(std::calloc(1 << 10, 1 << 10));
  check(std::accumulate(zeros, zeros + (1 << 20), 0) == 0, "calloc");
  std::free(zeros);
  volatile std::size_t half = SIZE_MAX / 2;
  check(std::calloc(half, 3) == nullptr && errno == ENOMEM, "calloc of too much");
  check(std::malloc(half) == nullptr && errno == ENOMEM, "malloc of too much");

  auto* moved = static_cast<unsigned char*>(small);
  std::memset(moved, 9, 100);
  for (const std::size_t bytes : {50'000u, 70'000u, 200'000u, 5'000'000u, 80'000u, 60'000u, 10u}) {
    moved = static_cast<unsigned char*>(std::realloc(moved, bytes));
    check(in_heap(moved) == (bytes >= 65536), "realloc: the wrong side");
    check(moved[0] == 9 && moved[9] == 9 && (bytes < 100 || moved[99] == 9), "realloc: other bytes");
    moved[bytes - 1] = 9;
  }
  std::free(moved);
  for (std::size_t alignment = 8; alignment <= 8u << 20; alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{1000}, std::size_t{100'000}}) {
      void* block = nullptr;
      check(posix_memalign(&block, alignment, bytes) == 0, "posix_memalign");
      check(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "posix_memalign: alignment");
      std::memset(block, 1, bytes);
      std::free(block);
      block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      check(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "aligned_alloc");
      std::free(block);
    }
  }
  void* block = nullptr;
  check(posix_memalign(&block, 3, 100'000) == EINVAL, "posix_memalign of 3");

  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& one : threads) one.join();

  std::vector<int> numbers(1'000'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const pid_t child = fork();
  if (child == 0) {
    bool good = numbers[999'999] == 999'999;
    numbers[0] = 77;
    std::vector<int> more(500'000, 3);
    good = good && more[499'999] == 3 && in_heap(more.data());
    std::exit(good && numbers[0] == 77 ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  check(status == 0, "the child");
  check(numbers[0] == 0, "the child wrote into its parent's memory");
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
