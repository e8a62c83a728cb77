// MPIX_Type_commit_comm and MPIX_Type_free_comm (include/spinloom/mpix.h).
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Where a rank's layout can be read. No form: it has none to give, or no layer.
struct Introduction {
  uint64_t sender = 0;
  uint64_t form = 0;
  uint64_t blob = 0;
  uint64_t bytes = 0;
};

Introduction introduce(Datatype type) {
  const Lock lock;
  const Form& form = *layer.types.form(type);
  if (!form.known || form.contiguous(2) || !Ship::publish(form)) return {};
  return {static_cast<uint64_t>(layer.rank), form.number, form.published.address(), form.published.bytes()};
}

// Every rank takes the same steps, whether it has the layer or not.
int exchange(Datatype type, Comm comm) {
  int is_inter = 0;
  int size = 0;
  int code = real.Comm_test_inter(comm, &is_inter);
  if (code != success || is_inter != 0) return code;
  code = real.Comm_size(comm, &size);
  if (code != success) return code;
  Introduction own;
  try {
    if (layer.on) own = introduce(type);
  } catch (const std::exception&) {  // no memory: peers ask when they need it
  }
  std::vector<Introduction> all(static_cast<size_t>(size));
  constexpr int bytes = sizeof(Introduction);
  code = real.Allgather(&own, bytes, handles().byte, all.data(), bytes, handles().byte, comm);
  if (code != success) return code;
  if (layer.on) {
    const Lock lock;
    layer.attend();
    for (const Introduction& peer : all) {
      if (peer.form == 0 || peer.sender == static_cast<uint64_t>(layer.rank)) continue;
      layer.ship.learn(static_cast<uint32_t>(peer.sender), {0, 0, peer.form, peer.blob, peer.bytes});
    }
  }
  return real.Barrier(comm);  // a rank may free its type now
}

}  // namespace

int Type_commit_comm(Datatype* type, Comm comm) {
  const int code = real.Type_commit(type);
  if (code != success) return code;
  try {
    return exchange(*type, comm);
  } catch (const std::exception&) {
    return raise(comm, error_other);
  }
}

int Type_free_comm(Datatype* type, Comm) { return real.Type_free(type); }

}  // namespace spinloom::mpi::SPINLOOM_ABI
