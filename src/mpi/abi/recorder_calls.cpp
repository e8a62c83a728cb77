// The calls that are recorded, by their names, for the front: those without a buffer's count.
#include "mpi/abi/recorder_calls.hpp"

#include "mpi/abi/recorder_collectives.hpp"
#include "mpi/abi/recorder_messages.hpp"
#include "mpi/abi/recorder_requests.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

using trace::Call;
using trace::CallForm;

// MPI_Init and MPI_Finalize, between which there is a trace.
template <Name name, class... Arguments>
struct RecordedInit {
  static inline int (*next)(Arguments...) = nullptr;
  static int call(Arguments... arguments) {
    const uint64_t begin_ns = Recorder::now_ns();
    const int code = next(arguments...);
    if (code == success) recorder.begin(begin_ns);
    return code;
  }
  static RecordingHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call), reinterpret_cast<void**>(&next)};
  }
};
int (*finalize)() = nullptr;
int recorded_finalize() {
  const uint64_t begin_ns = Recorder::now_ns();
  const int code = finalize();
  recorder.end(begin_ns, code);
  return code;
}

// MPI_Type_free, which is not written down. It is done also where recording has ended, because types still have the
// recorder's attribute.
int (*type_free)(Datatype*) = nullptr;
int freed_type(Datatype* type) {
  if (type != nullptr && !recorder.is_inside(__builtin_return_address(0))) recorder.drop_type_attribute(*type);
  return type_free(type);
}

#define SPINLOOM_PLAIN(name, call, form, rule, parameters) \
  Recorded<#name, int parameters>::hook<Call::call, CallForm::form, rules::rule>()
#define SPINLOOM_MAKES(name, parameters) SPINLOOM_PLAIN(name, Comm_make, blocking, CommMake, parameters),

std::span<const RecordingHook> plain_calls() {
  static const RecordingHook table[] = {
      RecordedInit<"Init", int*, char***>::hook(),
      RecordedInit<"Init_thread", int*, char***, int, int*>::hook(),
      {"Finalize", reinterpret_cast<void*>(&recorded_finalize), reinterpret_cast<void**>(&finalize)},
      {"Type_free", reinterpret_cast<void*>(&freed_type), reinterpret_cast<void**>(&type_free)},
      SPINLOOM_PLAIN(Start, Start, blocking, Start, (Request*)),
      SPINLOOM_PLAIN(Startall, Startall, blocking, Start, (int, Request*)),
      SPINLOOM_PLAIN(Wait, Wait, blocking, Wait, (Request*, Status*)),
      SPINLOOM_PLAIN(Waitall, Waitall, blocking, Waitall, (int, Request*, Status*)),
      SPINLOOM_PLAIN(Waitany, Waitany, blocking, Waitany, (int, Request*, int*, Status*)),
      SPINLOOM_PLAIN(Waitsome, Waitsome, blocking, Waitsome, (int, Request*, int*, int*, Status*)),
      SPINLOOM_PLAIN(Test, Test, blocking, Test, (Request*, int*, Status*)),
      SPINLOOM_PLAIN(Testall, Testall, blocking, Testall, (int, Request*, int*, Status*)),
      SPINLOOM_PLAIN(Testany, Testany, blocking, Testany, (int, Request*, int*, int*, Status*)),
      SPINLOOM_PLAIN(Testsome, Testsome, blocking, Testsome, (int, Request*, int*, int*, Status*)),
      SPINLOOM_PLAIN(Request_get_status, Test, blocking, Look, (Request, int*, Status*)),
      SPINLOOM_PLAIN(Request_get_status_all, Testall, blocking, Look, (int, const Request*, int*, Status*)),
      SPINLOOM_PLAIN(Request_get_status_any, Testany, blocking, Look, (int, const Request*, int*, int*, Status*)),
      SPINLOOM_PLAIN(Request_get_status_some, Testsome, blocking, LookSome, (int, const Request*, int*, int*, Status*)),
      SPINLOOM_PLAIN(Request_free, Request_free, blocking, Free, (Request*)),
      SPINLOOM_PLAIN(Cancel, Cancel, blocking, Cancel, (Request*)),
      SPINLOOM_PLAIN(Probe, Probe, blocking, Probe, (int, int, Comm, Status*)),
      SPINLOOM_PLAIN(Iprobe, Iprobe, blocking, TryProbe, (int, int, Comm, int*, Status*)),
      SPINLOOM_PLAIN(Mprobe, Mprobe, blocking, MatchProbe, (int, int, Comm, MessageHandle*, Status*)),
      SPINLOOM_PLAIN(Improbe, Improbe, blocking, TryMatchProbe, (int, int, Comm, int*, MessageHandle*, Status*)),
      SPINLOOM_PLAIN(Barrier, Barrier, blocking, Barrier, (Comm)),
      SPINLOOM_PLAIN(Ibarrier, Barrier, nonblocking, Barrier, (Comm, Request*)),
      SPINLOOM_PLAIN(Barrier_init, Barrier, persistent, Barrier, (Comm, Info, Request*)),
      SPINLOOM_COMM_CALLS(SPINLOOM_MAKES)
          SPINLOOM_PLAIN(Intercomm_merge, Comm_make, blocking, CommMake, (Comm, int, Comm*)),
      SPINLOOM_PLAIN(Intercomm_create, Comm_make, blocking, IntercommMake, (Comm, int, Comm, int, int, Comm*)),
      SPINLOOM_PLAIN(Comm_idup, Comm_make, nonblocking, CommMakeLater, (Comm, Comm*, Request*)),
      SPINLOOM_PLAIN(Comm_free, Comm_free, blocking, CommFree, (Comm*)),
      SPINLOOM_PLAIN(Comm_disconnect, Comm_free, blocking, CommFree, (Comm*)),
  };
  return table;
}

}  // namespace

const RecordingHook* recording_hook(std::string_view name) {
  for (const auto& table : {plain_calls(), message_calls(), collective_calls(), reduction_calls(), window_calls()}) {
    for (const RecordingHook& hook : table) {
      if (name == hook.name) return &hook;
    }
  }
  return nullptr;
}

#undef SPINLOOM_PLAIN
#undef SPINLOOM_MAKES

}  // namespace spinloom::mpi::SPINLOOM_ABI
