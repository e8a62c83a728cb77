// Types - what the layer knows of the datatypes that a program uses, by their handles.
//
// Contract: form() describes a datatype; the first call for a handle asks the MPI how it was made, builds the same type
//   from layout::Type, and compares sizes and bounds with the MPI's. A call that bypasses the layer asks bypasses_...()
//   only, which cost a few instructions.
// Invariants: (1) a handle is forgotten when its datatype is freed: by the delete function of an attribute, which
//   drop_attribute() takes away when the program frees the type, and the MPI itself where it frees one without a call
//   of ours;
//   (2) a type that cannot be built here, or whose sizes differ, has a Form with `is_known` false; (3) Bypass says yes
//   only where the call needs nothing of the layer; it is empty among threads, which it is not made for, where a report
//   counts every call, and after disable_bypass().
// Threads: the caller's lock. Time: none.
#pragma once

#include <array>
#include <optional>

#include "mpi/abi/abi.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/messages/message.hpp"
#include "predict/trace/sequence.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// The next functions ask the MPI how a datatype was made, and remember nothing.
[[nodiscard]] bool is_basic_type(Datatype type);
// Builds the type of layout::Type that has the same bytes. Nothing where that is not possible.
[[nodiscard]] std::optional<layout::Type> decode_type(Datatype type);
// decode_type() for pairs and other basic types, too, which decode_type() itself leaves to the MPI.
[[nodiscard]] std::optional<layout::Type> decode_whole_type(Datatype type);
// Finds out by MPI_Pack where the MPI itself takes the bytes of an element from: for a committed type of which the MPI
// says other bounds than those of its type map, or that cannot be built here. It needs memory for three times the
// extent; nothing where the size or the extent is more than 64 MiB.
[[nodiscard]] std::optional<layout::Type> type_as_packed(Datatype type);
// Returns the basic type that all of it is made of; nothing if there are several.
[[nodiscard]] std::optional<Datatype> element_of_type(Datatype type);
// Returns the basic types of an element, in their order.
[[nodiscard]] trace::Sequence sequence_of_type(Datatype type);

class Types {
 public:
  [[nodiscard]] bool begin();  // false: the MPI refused
  // The pointer holds until the next call; copy it to keep it.
  [[nodiscard]] const FormPointer& form(Datatype type) {
    const uint64_t key = key_of(type);
    if (key == last_key_ && !freed_.any()) return *last_;
    return find(type);
  }
  // Grows when handles may have got another meaning.
  [[nodiscard]] uint64_t changes() {
    if (freed_.any()) take_freed();
    return changes_;
  }
  // Takes our attribute away from a datatype that the program is about to free.
  void drop_attribute(Datatype type);
  void forget(Datatype type) {  // needs no lock
    Bypass& entry = bypass(type);
    if (entry.key != no_key) entry = {};
    freed_.add(key_of(type));
  }
  // True if it is known that a send, a receive, or a call of MPI_Pack or MPI_Unpack of `count` elements is left to the
  // MPI. False: form() must find out.
  [[nodiscard]] bool bypasses_send(Datatype type, int64_t count) {
    const Bypass& entry = bypass(type);
    return entry.key == key_of(type) && count < entry.sends;
  }
  [[nodiscard]] bool bypasses_receive(Datatype type, int64_t count) {
    const Bypass& entry = bypass(type);
    return entry.key == key_of(type) && count < entry.receives;
  }
  [[nodiscard]] bool bypasses_pack(Datatype type, int64_t count) {
    const Bypass& entry = bypass(type);
    return entry.key == key_of(type) && count < entry.packs;
  }
  // From now on no send, receive or pack bypasses the layer: it may have a buffer whose message the layer sends
  // (bounced.hpp).
  void disable_bypass();
  // True if the MPI has taken a call with this type without an error: the type is committed.
  [[nodiscard]] bool is_tried(Datatype type) { return tried_.find(key_of(type)) != nullptr; }
  void set_tried(Datatype type) { tried_.put(key_of(type), true); }

 private:
  static constexpr uint64_t no_key = ~uint64_t{0};
  // The least counts with which calls do not bypass the layer, for the types that were used last.
  struct Bypass {
    uint64_t key = no_key;
    int64_t sends = 0;
    int64_t receives = 0;
    int64_t packs = 0;
  };
  static constexpr size_t bypass_bits = 6;
  [[nodiscard]] Bypass& bypass(Datatype type) {
    return bypass_[key_of(type) * 0x9e37'79b9'7f4a'7c15 >> (64 - bypass_bits)];
  }
  void note_bypass(Datatype type, const Form& form);
  [[nodiscard]] const FormPointer& find(Datatype type);
  void take_freed();

  std::array<Bypass, size_t{1} << bypass_bits> bypass_;
  HandleMap<FormPointer> forms_;
  FreedHandles freed_;
  HandleMap<bool> tried_;
  uint64_t last_key_ = no_key;
  const FormPointer* last_ = nullptr;
  uint64_t changes_ = 0;
  int keyval_ = 0;
  bool is_bypass_disabled_ = false;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
