// IntCounts - calls with large counts, done by the MPI's calls with ints.
//
// Programs with weak references (mpi4py) find our doors for MPI_Send_c and its like under every MPI, and prefer them.
//
// Contract: IntCountForm<...>::call<&Counted<int>::X> has the prototype of MPI_X_c; a count that is no int is an error
//   of MPI. int_count_collectives() puts such forms into real.wide, for the collective calls and reductions that the
//   MPI has with ints only.
// Threads: any. Time: none.
#pragma once

#include <tuple>

#include "mpi/abi/abi.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// One argument of a call with large counts, as the call with ints takes it. fits() is false for a count that is no int.
template <class T>
struct IntArgument {
  explicit IntArgument(T argument) : value(argument) {}
  [[nodiscard]] bool fits() const { return true; }
  [[nodiscard]] T get() { return value; }
  T value;
};
template <>
struct IntArgument<Count> {
  explicit IntArgument(Count argument) : wide(argument) {}
  [[nodiscard]] bool fits() const { return wide == static_cast<int>(wide); }
  [[nodiscard]] int get() const { return static_cast<int>(wide); }
  Count wide;
};
template <>
struct IntArgument<Count*> {
  explicit IntArgument(Count* argument) : wide(argument), value(static_cast<int>(*argument)) {}
  IntArgument(const IntArgument&) = delete;
  IntArgument& operator=(const IntArgument&) = delete;
  ~IntArgument() {
    if (fits()) *wide = value;
  }
  [[nodiscard]] bool fits() const { return *wide == static_cast<int>(*wide); }
  [[nodiscard]] int* get() { return &value; }
  Count* wide;
  int value;
};

// The call with ints under the name of the one with large counts.
template <class Function>
struct IntCountForm;
template <class... Arguments>
struct IntCountForm<int(Arguments...)> {
  template <auto small>
  static int call(Arguments... arguments) {
    std::tuple<IntArgument<Arguments>...> ints(arguments...);
    return std::apply(
        [](auto&... each) {
          if ((each.fits() && ...)) return (real.*small)(each.get()...);
          const int answer = real.Comm_call_errhandler(handles().comm_world, error_other);
          return answer == success ? error_other : answer;
        },
        ints);
  }
};

// The form for calls of windows, whose arguments of type Aint stay as they are: it refuses an argument that the call
// with ints cannot hold.
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

void int_count_collectives();

// Calls that concern one rank only.
namespace int_counts {
int reduce_local(const void* in, void* in_out, Count count, Datatype type, Op operation);
int pack_external(const char* form, const void* in, Count count, Datatype type, void* out, Count bytes, Count* place);
int unpack_external(const char* form, const void* in, Count bytes, Count* place, void* out, Count count, Datatype type);
int buffer_attach(void* buffer, Count bytes);
int buffer_detach(void* address, Count* bytes);
}  // namespace int_counts

}  // namespace spinloom::mpi::SPINLOOM_ABI
