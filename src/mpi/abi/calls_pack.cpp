// MPI_Pack and MPI_Unpack: bytes of types that the layer knows are moved by our kernels.
//
// A call that can fail is left to the MPI, so that errors are its own: before the first use of a type, the MPI's call
// is made with no elements of it.
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Returns the form of `count` elements, if our kernels are to move them between `buffer` and `room` packed bytes; null
// if the call is the MPI's. `try_none` makes the MPI's call with no elements, once for each type; `code` is its error.
template <class TryNone>
FormPointer form_if_ours(const void* buffer, int64_t count, Datatype type, const void* packed, int64_t room, Comm comm,
                         TryNone&& try_none, int& code) {
  if (count <= 0 || packed == nullptr || comm == handles().comm_null || layer.settings.path == Path::pass) return {};
  bool is_tried = false;
  FormPointer form;
  {
    const Lock lock;
    const FormPointer& known_form = layer.types.form(type);
    if (!known_form->is_known || known_form->size <= 0 || known_form->is_contiguous(count) ||
        count > room / known_form->size)
      return {};
    if (reinterpret_cast<int64_t>(buffer) + known_form->true_lb < Place::least_address) return {};
    form = known_form;
    is_tried = layer.types.is_tried(type);
    ++layer.pack_calls;
  }
  if (is_tried) return form;
  code = try_none();
  const Lock lock;
  if (code == success) {
    layer.types.set_tried(type);
  } else {
    --layer.pack_calls;
    form.reset();
  }
  return form;
}

template <class N>
int64_t room_behind(N bytes, const N* position) {
  return position == nullptr || *position < 0 ? 0 : static_cast<int64_t>(bytes) - static_cast<int64_t>(*position);
}

}  // namespace

template <class N>
int Pack(const void* buffer, N count, Datatype type, void* packed, N bytes, N* position, Comm comm) {
  int code = success;
  const auto try_none = [&] { return real.counted<N>().Pack(buffer, 0, type, packed, bytes, position, comm); };
  const FormPointer form =
      form_if_ours(buffer, count, type, packed, room_behind(bytes, position), comm, try_none, code);
  if (code != success) return code;
  if (!form) return real.counted<N>().Pack(buffer, count, type, packed, bytes, position, comm);
  const Message message(*form, count, buffer);
  message.pack({0, message.bytes()}, static_cast<uint8_t*>(packed) + *position);
  *position += static_cast<N>(message.bytes());
  return success;
}

template <class N>
int Unpack(const void* packed, N bytes, N* position, void* buffer, N count, Datatype type, Comm comm) {
  int code = success;
  const auto try_none = [&] { return real.counted<N>().Unpack(packed, bytes, position, buffer, 0, type, comm); };
  const FormPointer form =
      form_if_ours(buffer, count, type, packed, room_behind(bytes, position), comm, try_none, code);
  if (code != success) return code;
  if (!form) return real.counted<N>().Unpack(packed, bytes, position, buffer, count, type, comm);
  const Message message(*form, count, buffer);
  message.unpack({0, message.bytes()}, static_cast<const uint8_t*>(packed) + *position);
  *position += static_cast<N>(message.bytes());
  return success;
}

template int Pack<int>(const void*, int, Datatype, void*, int, int*, Comm);
template int Pack<Count>(const void*, Count, Datatype, void*, Count, Count*, Comm);
template int Unpack<int>(const void*, int, int*, void*, int, Datatype, Comm);
template int Unpack<Count>(const void*, Count, Count*, void*, Count, Datatype, Comm);

}  // namespace spinloom::mpi::SPINLOOM_ABI
