// MPIX_Type_commit_comm and MPIX_Type_free_comm (include/spinloom/mpix.h).
#include <type_traits>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/recorder.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The place where a rank's layout can be read. If `layout_number` is 0, the rank has none to give, or does not have the
// layer.
struct Introduction {
  uint64_t sender = 0;
  uint64_t layout_number = 0;
  uint64_t blob = 0;
  uint64_t bytes = 0;
};

Introduction introduce(Datatype type) {
  const Lock lock;
  const Form& form = *layer.types.form(type);
  if (!form.is_known || form.is_contiguous(2) || !CopyPipeline::publish(form)) return {};
  return {static_cast<uint64_t>(layer.rank), form.number, form.published.address(), form.published.bytes()};
}

// Lets the ranks read each other's layouts of the type. Every rank takes the same steps, whether it has the layer or
// not. On an intercommunicator nothing is done.
int exchange_layouts(Datatype type, Comm comm) {
  int is_inter = 0;
  int size = 0;
  int code = real.Comm_test_inter(comm, &is_inter);
  if (code != success || is_inter != 0) return code;
  code = real.Comm_size(comm, &size);
  if (code != success) return code;
  Introduction own;
  try {
    if (layer.is_on) own = introduce(type);
  } catch (const std::exception&) {  // no memory: peers ask when they need it
  }
  std::vector<Introduction> all(static_cast<size_t>(size));
  constexpr int bytes = sizeof(Introduction);
  code = real.Allgather(&own, bytes, handles().byte, all.data(), bytes, handles().byte, comm);
  if (code != success) return code;
  if (layer.is_on) {
    const Lock lock;
    layer.attend();
    for (const Introduction& peer : all) {
      if (peer.layout_number == 0 || peer.sender == static_cast<uint64_t>(layer.rank)) continue;
      layer.pipeline.learn(static_cast<uint32_t>(peer.sender), {0, 0, peer.layout_number, peer.blob, peer.bytes});
    }
  }
  return real.Barrier(comm);  // a rank may free its type now
}

// Converts a handle between C and Fortran by the MPI's own function `name`; if that is missing, by the one of MPI 5.
template <class To, class From>
To convert_handle(From handle, const char* name, const char* name_in_mpi_5) {
  if constexpr (std::is_same_v<To, From>) {
    return handle;  // integers in C, too
  } else {
    const Library& library = Library::of_process();
    void* function = library.function(name);
    if (function == nullptr) function = library.function(name_in_mpi_5);
    return reinterpret_cast<To (*)(From)>(function)(handle);
  }
}

void call_from_fortran(int (*call)(Datatype*, Comm), int* type, int comm, int* code) {
  auto handle = convert_handle<Datatype>(*type, "PMPI_Type_f2c", "PMPI_Type_fromint");
  *code = call(&handle, convert_handle<Comm>(comm, "PMPI_Comm_f2c", "PMPI_Comm_fromint"));
  *type = convert_handle<int>(handle, "PMPI_Type_c2f", "PMPI_Type_toint");
}

}  // namespace

int Type_commit_comm(Datatype* type, Comm comm) {
  const int code = real.Type_commit(type);
  if (code != success) return code;
  try {
    return exchange_layouts(*type, comm);
  } catch (const std::exception&) {
    return raise(comm, error_other);
  }
}

int Type_free_comm(Datatype* type, Comm) {
  recorder.drop_type_attribute(*type);
  return Type_free(type);
}

void Type_commit_comm_fortran(int* type, const int* comm, int* code) {
  call_from_fortran(&Type_commit_comm, type, *comm, code);
}

void Type_free_comm_fortran(int* type, const int* comm, int* code) {
  call_from_fortran(&Type_free_comm, type, *comm, code);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
