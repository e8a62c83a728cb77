// Operation - an operation that an endpoint of libfabric has under way; and owners of the library's objects.
//
// Contract: a FidPtr closes its object when it is destroyed; an InfoPtr is freed by the library that made it. The
//   context of an Operation comes back with its completion.
// Invariants: (1) `context` is the first member of an Operation, so that both have the same address. Providers write to
//   it.
// Threads: one owner. Time: none.
#pragma once

#include <memory>
#include <vector>

#include "live/fabric/fabric_interface.hpp"
#include "live/fabric/fabric_library.hpp"
#include "live/fabric/fabric_port.hpp"

namespace spinloom::live::fabric {

struct CloseFid {
  template <class Object>
  void operator()(Object* object) const {
    object->fid.ops->close(&object->fid);
  }
};
template <class Object>
using FidPtr = std::unique_ptr<Object, CloseFid>;

inline int bind(fid* object, fid* other, uint64_t flags) { return object->ops->bind(object, other, flags); }
inline int enable(fid* object) { return object->ops->control(object, command_enable, nullptr); }

struct FreeInfo {
  const FabricLibrary* library;
  void operator()(fi_info* info) const { library->freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

struct Operation {
  enum class Kind : uint8_t { receive, send, read };
  fi_context2 context{};
  Kind kind;
  explicit Operation(Kind operation) : kind(operation) {}
};

struct ReceiveOperation : Operation {
  ReceiveOperation() : Operation(Kind::receive) {}
  std::vector<uint8_t> bytes;
  FidPtr<fid_mr> memory;
};

struct SendOperation : Operation, FabricPort::Slot {
  SendOperation() : Operation(Kind::send) {}
  FidPtr<fid_mr> memory;
};

struct ReadOperation : Operation {
  ReadOperation() : Operation(Kind::read) {}
  uint64_t token = 0;
};

struct ReadBuffer {
  std::vector<uint8_t> bytes;
  FidPtr<fid_mr> memory;
};

}  // namespace spinloom::live::fabric
