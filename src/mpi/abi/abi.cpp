#include "mpi/abi/abi.hpp"

#include <tuple>

#include "mpi/library.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

Real real;

namespace {

template <class Function>
bool find(Function& function, const char* name, const char* ending = "") {
  function = reinterpret_cast<Function>(Library::of_process().function(std::string("PMPI_") + name + ending));
  return function != nullptr;
}

// One argument of a call with large counts, as the call with ints takes it.
template <class T>
struct Narrow {
  explicit Narrow(T argument) : value(argument) {}
  [[nodiscard]] bool fits() const { return true; }
  [[nodiscard]] T get() { return value; }
  T value;
};
template <>
struct Narrow<Count> {
  explicit Narrow(Count argument) : whole(argument) {}
  [[nodiscard]] bool fits() const { return whole == static_cast<int>(whole); }
  [[nodiscard]] int get() const { return static_cast<int>(whole); }
  Count whole;
};
template <>
struct Narrow<Count*> {
  explicit Narrow(Count* argument) : whole(argument), value(static_cast<int>(*argument)) {}
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;
  ~Narrow() {
    if (fits()) *whole = value;
  }
  [[nodiscard]] bool fits() const { return *whole == static_cast<int>(*whole); }
  [[nodiscard]] int* get() { return &value; }
  Count* whole;
  int value;
};

// The call with ints under the name of the one with large counts. Programs with weak references (mpi4py) find our doors
// for MPI_Send_c and its like under every MPI, and prefer them.
template <class Function>
struct Narrowed;
template <class... Arguments>
struct Narrowed<int(Arguments...)> {
  template <auto small>
  static int call(Arguments... arguments) {
    std::tuple<Narrow<Arguments>...> narrow(arguments...);
    return std::apply(
        [](auto&... each) {
          if ((each.fits() && ...)) return (real.*small)(each.get()...);
          const int answer = real.Comm_call_errhandler(handles().comm_world, error_other);
          return answer == success ? error_other : answer;
        },
        narrow);
  }
};

// The same for calls that have addresses beside their counts: what is an int in the call with ints must be one.
template <class Large, auto small, class Small = decltype(small)>
struct Shortened;
template <class... Wide, auto small, class... Short>
struct Shortened<int (*)(Wide...), small, int (*Counted<int>::*)(Short...)> {
  static int call(Wide... arguments) {
    if (((arguments == static_cast<Wide>(static_cast<Short>(arguments))) && ...)) {
      return (real.*small)(static_cast<Short>(arguments)...);
    }
    const int answer = real.Comm_call_errhandler(handles().comm_world, error_other);
    return answer == success ? error_other : answer;
  }
};

}  // namespace

std::string Real::load() {
  std::string missing;
#define SPINLOOM_FIND(name, parameters) \
  if (!find(this->name, #name)) missing = #name;
  SPINLOOM_REAL_CALLS(SPINLOOM_FIND)
  SPINLOOM_EPOCH_CALLS(SPINLOOM_FIND)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, N, parameters) \
  if (!find(this->name, #name)) missing = #name;
  SPINLOOM_COUNTED_CALLS(SPINLOOM_FIND, int)
  SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_FIND, int)
  SPINLOOM_WINDOW_CALLS(SPINLOOM_FIND, int)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, parameters) find(this->name, #name);
  SPINLOOM_NEWER_CALLS(SPINLOOM_FIND)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, N, parameters) find(this->name, #name);
  SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_FIND, int)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, N, parameters) find(large.name, #name, "_c");
  SPINLOOM_COUNTED_CALLS(SPINLOOM_FIND, Count)
  SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_FIND, Count)
  SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_FIND, Count)
  SPINLOOM_WINDOW_CALLS(SPINLOOM_FIND, Count)
#undef SPINLOOM_FIND
  wide = large;
#define SPINLOOM_NARROW(name, N, parameters)                                   \
  if (large.name == nullptr && this->name != nullptr) {                        \
    wide.name = &Narrowed<int parameters>::template call<&Counted<int>::name>; \
  }
  SPINLOOM_COUNTED_CALLS(SPINLOOM_NARROW, Count)
  SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_NARROW, Count)
#undef SPINLOOM_NARROW
#define SPINLOOM_SHORTEN(name, N, parameters) \
  if (large.name == nullptr) wide.name = &Shortened<decltype(wide.name), &Counted<int>::name>::call;
  SPINLOOM_WINDOW_CALLS(SPINLOOM_SHORTEN, Count)
#undef SPINLOOM_SHORTEN
  return missing;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
