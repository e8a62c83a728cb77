// Rules for windows, and for accesses to the memory of others. A signature's `comm` is the window's communicator; the
// target's block has the displacement, in the target's unit, as its address.
#pragma once

#include <cstring>
#include <tuple>

#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

class WindowRule : public Rule {
 protected:
  static void put_window(trace::Signature& signature, uint64_t key) {
    const Recorder::Window* const recorded = recorder.windows().find(key);
    if (recorded == nullptr) return;
    signature.window = recorded->number;
    signature.comm = recorded->comm;
  }
};

// The calls that make a window. This rank's part of it is the block that the signature receives into, in bytes.
class WindowMakeRule : public Rule {
 protected:
  static void record_window(trace::Signature& signature, const void* base, int64_t bytes, Comm comm, Win window) {
    signature.comm = recorder.comm(comm).number;
    signature.window = recorder.next_window();
    signature.receives.push_back({reinterpret_cast<uint64_t>(base), bytes, recorder.byte_type()});
    recorder.windows().put(key_of(window), {signature.window, signature.comm});
  }
};
struct Win_create : WindowMakeRule {
  template <class N>
  void after(trace::Signature& signature, void* base, Aint bytes, N, Info, Comm comm, Win* window) {
    record_window(signature, base, bytes, comm, *window);
  }
};
struct Win_allocate : WindowMakeRule {
  template <class N>
  void after(trace::Signature& signature, Aint bytes, N, Info, Comm comm, void* base, Win* window) {
    void* at = nullptr;  // the call writes it where `base` points to
    std::memcpy(&at, base, sizeof at);
    record_window(signature, at, bytes, comm, *window);
  }
};
using Win_allocate_shared = Win_allocate;
struct Win_create_dynamic : WindowMakeRule {
  void after(trace::Signature& signature, Info, Comm comm, Win* window) {
    record_window(signature, nullptr, 0, comm, *window);
  }
};
struct Win_free : WindowRule {
  void before(Win*& window) { key_ = key_of(*window); }
  void after(trace::Signature& signature, Win*) {
    put_window(signature, key_);
    recorder.windows().erase(key_);
  }

 private:
  uint64_t key_ = 0;
};

// Calls of epochs, and flushes. WindowCall: the window is the last argument. TargetCall: the arguments are the target's
// rank and the window.
struct WindowCall : WindowRule {
  template <class... Arguments>
  void after(trace::Signature& signature, Arguments... arguments) {
    put_window(signature, key_of(std::get<sizeof...(arguments) - 1>(std::make_tuple(arguments...))));
  }
};
struct TargetCall : WindowRule {
  void after(trace::Signature& signature, int target, Win window) {
    put_window(signature, key_of(window));
    signature.peer = Recorder::peer(target);
  }
};
struct Win_lock : WindowRule {
  void after(trace::Signature& signature, int, int target, int, Win window) {
    put_window(signature, key_of(window));
    signature.peer = Recorder::peer(target);
  }
};
struct Win_test : WindowRule {
  void after(trace::Signature& signature, Win window, int* flag) {
    put_window(signature, key_of(window));
    if (*flag == 0) recorder.mark_as_poll();
  }
};

class Access : public WindowRule {
 protected:
  static trace::Block at_target(Aint target_disp, int64_t count, Datatype type) {
    return {static_cast<uint64_t>(target_disp), count, recorder.type(type)};
  }
  static void begin(trace::Signature& signature, int target, Win window) {
    put_window(signature, key_of(window));
    signature.peer = Recorder::peer(target);
  }
};
struct Put : Access {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* buffer, N count, Datatype type, int target, Aint target_disp,
             N target_count, Datatype target_type, Win window, More... more) {
    begin(signature, target, window);
    signature.sends.push_back(block_of(buffer, count, type));
    signature.receives.push_back(at_target(target_disp, target_count, target_type));
    note_request(signature, false, more...);
  }
  template <class N, class... More>
  void after(trace::Signature& signature, const void* buffer, N count, Datatype type, int target, Aint target_disp,
             N target_count, Datatype target_type, Op, Win window, More... more) {
    after(signature, buffer, count, type, target, target_disp, target_count, target_type, window, more...);
  }
};
struct Get : Access {
  template <class N, class... More>
  void after(trace::Signature& signature, void* buffer, N count, Datatype type, int target, Aint target_disp,
             N target_count, Datatype target_type, Win window, More... more) {
    begin(signature, target, window);
    signature.sends.push_back(at_target(target_disp, target_count, target_type));
    signature.receives.push_back(block_of(buffer, count, type));
    note_request(signature, false, more...);
  }
};
// The operand is sent. receives[0] is the memory for the target's old elements, receives[1] is their place at the
// target.
struct GetAccumulate : Access {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* buffer, N count, Datatype type, void* result, N result_count,
             Datatype result_type, int target, Aint target_disp, N target_count, Datatype target_type, Op, Win window,
             More... more) {
    begin(signature, target, window);
    signature.sends.push_back(block_of(buffer, count, type));
    signature.receives.push_back(block_of(result, result_count, result_type));
    signature.receives.push_back(at_target(target_disp, target_count, target_type));
    note_request(signature, false, more...);
  }
};
struct FetchAndOp : Access {
  void after(trace::Signature& signature, const void* buffer, void* result, Datatype type, int target, Aint target_disp,
             Op, Win window) {
    begin(signature, target, window);
    signature.sends.push_back(block_of(buffer, 1, type));
    signature.receives.push_back(block_of(result, 1, type));
    signature.receives.push_back(at_target(target_disp, 1, type));
  }
};
struct CompareAndSwap : Access {
  void after(trace::Signature& signature, const void* buffer, const void*, void* result, Datatype type, int target,
             Aint target_disp, Win window) {
    begin(signature, target, window);
    signature.sends.push_back(block_of(buffer, 1, type));
    signature.receives.push_back(block_of(result, 1, type));
    signature.receives.push_back(at_target(target_disp, 1, type));
  }
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
