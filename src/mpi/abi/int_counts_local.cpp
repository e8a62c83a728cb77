// Calls of one rank with large counts, done by the MPI's calls with ints (int_counts.hpp).
#include "mpi/abi/int_counts.hpp"
#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::int_counts {
namespace {

bool is_int(Count value) { return value == static_cast<int>(value); }
int refuse_count() { return raise(handles().comm_world, error_other); }

}  // namespace

int reduce_local(const void* in, void* in_out, Count count, Datatype type, Op operation) {
  if (!is_int(count)) return refuse_count();
  return real.Reduce_local(in, in_out, static_cast<int>(count), type, operation);
}
int pack_external(const char* form, const void* in, Count count, Datatype type, void* out, Count bytes, Count* place) {
  if (!is_int(count)) return refuse_count();
  auto at = static_cast<Aint>(*place);
  const int code = real.Pack_external(form, in, static_cast<int>(count), type, out, static_cast<Aint>(bytes), &at);
  *place = at;
  return code;
}
int unpack_external(const char* form, const void* in, Count bytes, Count* place, void* out, Count count,
                    Datatype type) {
  if (!is_int(count)) return refuse_count();
  auto at = static_cast<Aint>(*place);
  const int code = real.Unpack_external(form, in, static_cast<Aint>(bytes), &at, out, static_cast<int>(count), type);
  *place = at;
  return code;
}
int buffer_attach(void* buffer, Count bytes) {
  return is_int(bytes) ? real.Buffer_attach(buffer, static_cast<int>(bytes)) : refuse_count();
}
int buffer_detach(void* address, Count* bytes) {
  int int_bytes = 0;
  const int code = real.Buffer_detach(address, &int_bytes);
  if (bytes != nullptr) *bytes = int_bytes;
  return code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI::int_counts
