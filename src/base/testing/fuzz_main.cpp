// A driver for fuzz targets without libFuzzer: mutates a corpus and keeps what reaches new code.
//
//   spinloom_fuzz_NAME --runs N | --seconds S [--seed K] [--current FILE]
//   spinloom_fuzz_NAME FILE      one input again
//
// New code is seen where the target was compiled with -fsanitize-coverage=trace-pc (make fuzz); otherwise each accepted
// input joins the corpus. The input that is being tried lies in FILE (fuzz.current), also when the process dies.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "base/testing/fuzz.hpp"

namespace {

using namespace spinloom;
using fuzz::Input;

constexpr size_t input_bytes_max = 1 << 14;
constexpr size_t corpus_max = 4096;

constexpr uintptr_t places_max = 1 << 16;
bool reached[places_max];  // no locks, no containers: the function that fills it must call nothing
int64_t reached_count = 0;

// The input that is being tried, in a file that outlives the process.
class CurrentInput {
 public:
  explicit CurrentInput(const std::string& path) {
    file_ = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    if (file_ < 0 || ftruncate(file_, input_bytes_max) != 0) return;
    void* const place = mmap(nullptr, input_bytes_max, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (place != MAP_FAILED) bytes_ = static_cast<uint8_t*>(place);
  }
  ~CurrentInput() {
    if (bytes_ != nullptr) munmap(bytes_, input_bytes_max);
    if (file_ >= 0) close(file_);
  }
  CurrentInput(const CurrentInput&) = delete;
  CurrentInput& operator=(const CurrentInput&) = delete;

  void store(const Input& input) {
    if (bytes_ == nullptr) return;
    std::memset(bytes_, 0, std::exchange(stored_bytes_, input.size()));
    std::copy(input.begin(), input.end(), bytes_);
  }
  void truncate_to(const Input& input) const {
    if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(input.size())) != 0) std::fputs("not kept\n", stderr);
  }

 private:
  int file_ = -1;
  uint8_t* bytes_ = nullptr;
  size_t stored_bytes_ = 0;
};

void mutate_input(Random& random, Input& input, const std::vector<Input>& corpus) {
  for (uint64_t step = 1 + random.below(4); step > 0; --step) {
    if (input.empty()) input.push_back(0);
    const size_t at = random.below(input.size());
    switch (random.below(8)) {
      case 0: input[at] ^= static_cast<uint8_t>(1U << random.below(8)); break;
      case 1: input[at] = static_cast<uint8_t>(random.below(256)); break;
      case 2: input.erase(input.begin() + static_cast<int64_t>(at)); break;
      case 3: input.insert(input.begin() + static_cast<int64_t>(at), input[random.below(input.size())]); break;
      case 4: {  // a part of another input
        const Input& other = corpus[random.below(corpus.size())];
        if (other.empty()) break;
        const size_t from = random.below(other.size());
        const size_t length = 1 + random.below(std::min<size_t>(other.size() - from, 64));
        for (size_t i = 0; i < length && at + i < input.size(); ++i) input[at + i] = other[from + i];
        break;
      }
      default: fuzz::mutate(random, input);
    }
  }
  if (input.size() > input_bytes_max) input.resize(input_bytes_max);
}

int64_t int_option(int argc, char** argv, const char* option, int64_t default_value) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], option) == 0) return std::strtoll(argv[i + 1], nullptr, 10);
  }
  return default_value;
}

std::string text_option(int argc, char** argv, const char* option, const char* default_value) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], option) == 0) return argv[i + 1];
  }
  return default_value;
}

int run_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path);
    return 2;
  }
  const Input input((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  LLVMFuzzerTestOneInput(input.data(), input.size());
  std::printf("%zu bytes: fine\n", input.size());
  return 0;
}

}  // namespace

#ifdef __clang__
#define NOT_TRACED __attribute__((no_sanitize("coverage")))
#else
#define NOT_TRACED __attribute__((no_sanitize_coverage))
#endif

// Called at every edge of code that was compiled with -fsanitize-coverage=trace-pc.
extern "C" NOT_TRACED __attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  const uintptr_t slot = (place ^ (place >> 16)) % places_max;
  reached_count += reached[slot] ? 0 : 1;
  reached[slot] = true;
}

int main(int argc, char** argv) {
  if (argc == 2) return run_file(argv[1]);
  const int64_t runs = int_option(argc, argv, "--runs", INT64_MAX);
  const int64_t seconds = int_option(argc, argv, "--seconds", runs == INT64_MAX ? 10 : 100'000);
  const auto seed = static_cast<uint64_t>(int_option(argc, argv, "--seed", 1));
  const std::string path = text_option(argc, argv, "--current", "fuzz.current");
  Random random(seed, "fuzz");
  CurrentInput current(path);
  std::vector<Input> corpus = fuzz::seeds(random);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int64_t accepted = 0;
  int64_t done = 0;
  for (; done < runs && (done % 256 != 0 || std::chrono::steady_clock::now() < end); ++done) {
    Input input = corpus[random.below(corpus.size())];
    if (done < static_cast<int64_t>(corpus.size())) {
      input = corpus[static_cast<size_t>(done)];
    } else {
      mutate_input(random, input, corpus);
    }
    current.store(input);
    const int64_t before = reached_count;
    try {
      const bool is_accepted = LLVMFuzzerTestOneInput(input.data(), input.size()) == 0;
      accepted += is_accepted ? 1 : 0;
      const bool is_new = before == 0 ? is_accepted : reached_count > before;
      if (is_new && corpus.size() < corpus_max) corpus.push_back(std::move(input));
    } catch (const std::exception& error) {
      current.truncate_to(input);
      std::fprintf(stderr, "run %lld of seed %llu: %s\nreplay: %s %s\n", static_cast<long long>(done),
                   static_cast<unsigned long long>(seed), error.what(), argv[0], path.c_str());
      return 1;
    }
  }
  std::printf("%lld inputs, %lld accepted, %lld places reached, corpus of %zu\n", static_cast<long long>(done),
              static_cast<long long>(accepted), static_cast<long long>(reached_count), corpus.size());
  unlink(path.c_str());
  return 0;
}
