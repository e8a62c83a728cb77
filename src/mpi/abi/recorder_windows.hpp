// Rules for windows, and for accesses to the memory of others. A signature's `comm` is the window's communicator; the
// target's block has the displacement, in the target's unit, as its address.
#pragma once

#include <cstring>
#include <tuple>

#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

class OfWindow : public Rule {
 protected:
  static void put_window(trace::Signature& to, uint64_t key) {
    const Recorder::Window* const known = recorder.windows().find(key);
    if (known == nullptr) return;
    to.window = known->number;
    to.comm = known->comm;
  }
};

// The calls that make a window. This rank's part of it is the block that the signature receives into, in bytes.
class MakesWindow : public Rule {
 protected:
  static void made(trace::Signature& to, const void* base, int64_t bytes, Comm comm, Win window) {
    to.comm = recorder.comm(comm).number;
    to.window = recorder.next_window();
    to.receives.push_back({reinterpret_cast<uint64_t>(base), bytes, recorder.byte_type()});
    recorder.windows().put(key_of(window), {to.window, to.comm});
  }
};
struct Win_create : MakesWindow {
  template <class N>
  void after(trace::Signature& to, void* base, Aint bytes, N, Info, Comm comm, Win* window) {
    made(to, base, bytes, comm, *window);
  }
};
struct Win_allocate : MakesWindow {
  template <class N>
  void after(trace::Signature& to, Aint bytes, N, Info, Comm comm, void* base, Win* window) {
    void* at = nullptr;  // the call writes it where `base` points to
    std::memcpy(&at, base, sizeof at);
    made(to, at, bytes, comm, *window);
  }
};
using Win_allocate_shared = Win_allocate;
struct Win_create_dynamic : MakesWindow {
  void after(trace::Signature& to, Info, Comm comm, Win* window) { made(to, nullptr, 0, comm, *window); }
};
struct Win_free : OfWindow {
  void before(Win*& window) { key_ = key_of(*window); }
  void after(trace::Signature& to, Win*) {
    put_window(to, key_);
    recorder.windows().erase(key_);
  }

 private:
  uint64_t key_ = 0;
};

// Calls of epochs, and flushes. OnWindow: the window is the last argument. OnTarget: the arguments are the target's
// rank and the window.
struct OnWindow : OfWindow {
  template <class... Arguments>
  void after(trace::Signature& to, Arguments... arguments) {
    put_window(to, key_of(std::get<sizeof...(arguments) - 1>(std::make_tuple(arguments...))));
  }
};
struct OnTarget : OfWindow {
  void after(trace::Signature& to, int target, Win window) {
    put_window(to, key_of(window));
    to.peer = Recorder::peer(target);
  }
};
struct Win_lock : OfWindow {
  void after(trace::Signature& to, int, int target, int, Win window) {
    put_window(to, key_of(window));
    to.peer = Recorder::peer(target);
  }
};
struct Win_test : OfWindow {
  void after(trace::Signature& to, Win window, int* flag) {
    put_window(to, key_of(window));
    if (*flag == 0) recorder.mark_as_poll();
  }
};

class Access : public OfWindow {
 protected:
  static trace::Block at_target(Aint place, int64_t count, Datatype type) {
    return {static_cast<uint64_t>(place), count, recorder.type(type)};
  }
  static void begin(trace::Signature& to, int target, Win window) {
    put_window(to, key_of(window));
    to.peer = Recorder::peer(target);
  }
};
struct Put : Access {
  template <class N, class... More>
  void after(trace::Signature& to, const void* buffer, N count, Datatype type, int target, Aint place, N there,
             Datatype type_there, Win window, More... more) {
    begin(to, target, window);
    to.sends.push_back(block_of(buffer, count, type));
    to.receives.push_back(at_target(place, there, type_there));
    made_request(to, false, more...);
  }
  template <class N, class... More>
  void after(trace::Signature& to, const void* buffer, N count, Datatype type, int target, Aint place, N there,
             Datatype type_there, Op, Win window, More... more) {
    after(to, buffer, count, type, target, place, there, type_there, window, more...);
  }
};
struct Get : Access {
  template <class N, class... More>
  void after(trace::Signature& to, void* buffer, N count, Datatype type, int target, Aint place, N there,
             Datatype type_there, Win window, More... more) {
    begin(to, target, window);
    to.sends.push_back(at_target(place, there, type_there));
    to.receives.push_back(block_of(buffer, count, type));
    made_request(to, false, more...);
  }
};
// The operand is sent. receives[0] is the memory for the target's old elements, receives[1] is their place at the
// target.
struct GetAccumulate : Access {
  template <class N, class... More>
  void after(trace::Signature& to, const void* buffer, N count, Datatype type, void* result, N results,
             Datatype result_type, int target, Aint place, N there, Datatype type_there, Op, Win window, More... more) {
    begin(to, target, window);
    to.sends.push_back(block_of(buffer, count, type));
    to.receives.push_back(block_of(result, results, result_type));
    to.receives.push_back(at_target(place, there, type_there));
    made_request(to, false, more...);
  }
};
struct FetchAndOp : Access {
  void after(trace::Signature& to, const void* buffer, void* result, Datatype type, int target, Aint place, Op,
             Win window) {
    begin(to, target, window);
    to.sends.push_back(block_of(buffer, 1, type));
    to.receives.push_back(block_of(result, 1, type));
    to.receives.push_back(at_target(place, 1, type));
  }
};
struct CompareAndSwap : Access {
  void after(trace::Signature& to, const void* buffer, const void*, void* result, Datatype type, int target, Aint place,
             Win window) {
    begin(to, target, window);
    to.sends.push_back(block_of(buffer, 1, type));
    to.receives.push_back(block_of(result, 1, type));
    to.receives.push_back(at_target(place, 1, type));
  }
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
