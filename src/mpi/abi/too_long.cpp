#include "mpi/abi/too_long.hpp"

#include <type_traits>
#include <vector>

#include "mpi/abi/version.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Calls that nothing else here needs.
struct HandlerFunctions {
  int (*get_handler)(Comm, Errhandler*);
  int (*create_handler)(void (*)(Comm*, int*, ...), Errhandler*);
  int (*free_handler)(Errhandler*);
  int (*get_name)(Comm, char*, int*);
  int (*set_name)(Comm, const char*);

  static const HandlerFunctions& of_mpi() {
    static const HandlerFunctions functions_of_mpi = [] {
      const auto find = [](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(Library::of_process().function(name));
      };
      HandlerFunctions functions{};
      find(functions.get_handler, "PMPI_Comm_get_errhandler");
      find(functions.create_handler, "PMPI_Comm_create_errhandler");
      find(functions.free_handler, "PMPI_Errhandler_free");
      find(functions.get_name, "PMPI_Comm_get_name");
      find(functions.set_name, "PMPI_Comm_set_name");
      return functions;
    }();
    return functions_of_mpi;
  }
  [[nodiscard]] bool has_all() const {
    return get_handler != nullptr && create_handler != nullptr && free_handler != nullptr && get_name != nullptr &&
           set_name != nullptr;
  }
};

// True under MPICH's interface: MPICH keeps to the room of a receive, and its texts name the arguments. Open MPI 4.1
// writes the whole of a message to ourselves, whatever the room: it gets memory for that, and its texts name no
// arguments.
constexpr bool cuts_messages_to_ourselves = std::is_same_v<Errhandler, int>;

// True for MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT and MPI_ERRORS_RETURN, which do not look at the communicator; others
// are functions of the program's.
template <class Handler>
bool is_predefined(Handler handler) {
  if constexpr (std::is_same_v<Handler, int>) {
    constexpr unsigned kind = 0xc0000000;
    constexpr unsigned built_in = 0x40000000;
    return (static_cast<unsigned>(handler) & kind) == built_in;
  } else {
    constexpr uintptr_t numbers = 0x1000;  // the standard interface's handles
    if (reinterpret_cast<uintptr_t>(handler) < numbers) return true;
    const Library& library = Library::of_process();
    return handler == library.object("ompi_mpi_errors_are_fatal") ||
           handler == library.object("ompi_mpi_errors_abort") || handler == handles().errors_return;
  }
}

// A communicator of this rank alone with the name and the error handler of another one. A handler of the program's is
// called with that other one.
class TwinComm {
 public:
  explicit TwinComm(Comm original) : original_(original) {
    const HandlerFunctions& functions = HandlerFunctions::of_mpi();
    if (!functions.has_all() || !layer.split_own_comm(&comm_)) return;
    is_made_ = true;
    char name[512] = "";
    int length = 0;
    if (functions.get_name(original, name, &length) == success) functions.set_name(comm_, name);
    Errhandler handler{};
    if (functions.get_handler(original, &handler) != success) return;
    const bool is_alike = is_predefined(handler);
    if (is_alike) real.Comm_set_errhandler(comm_, handler);
    functions.free_handler(&handler);
    if (is_alike || functions.create_handler(&TwinComm::raised, &handler) != success) return;
    real.Comm_set_errhandler(comm_, handler);
    functions.free_handler(&handler);
    outer_ = current_;
    current_ = this;
    is_current_ = true;
  }
  TwinComm(const TwinComm&) = delete;
  TwinComm& operator=(const TwinComm&) = delete;
  ~TwinComm() {
    if (is_current_) current_ = outer_;
    if (is_made_) real.Comm_free(&comm_);
  }
  [[nodiscard]] bool is_made() const { return is_made_; }
  [[nodiscard]] Comm comm() const { return comm_; }

 private:
  static void raised(Comm*, int* code, ...) {  // NOLINT: MPI's prototype
    if (current_ != nullptr) (void)raise(current_->original_, *code);
  }
  static inline thread_local const TwinComm* current_ = nullptr;
  const TwinComm* outer_ = nullptr;
  Comm original_;
  Comm comm_{};
  bool is_made_ = false;
  bool is_current_ = false;
};

}  // namespace

int ReceivingCall::again(const Place& place, Comm comm, int tag, Status* status) {
  if (current_ != nullptr) return current_->again_(current_->call_object_, place, comm, tag, status);
  return end_again<EndCall::wait>(place, comm, tag, status);
}

int too_long(const uint8_t* message, int64_t length, const Place& place, Status* status) {
  const Status seen = *status;
  int code = error_truncate;
  bool is_raised = false;  // MPICH 5 returns MPI_SUCCESS where a handler of the program's was called
  const int64_t room = place.capacity();
  if (message != nullptr && length <= too_long_max && place.count == static_cast<int>(place.count)) {
    const TwinComm twin(place.comm);
    Place into = place;
    std::vector<uint8_t> scratch;
    if (!cuts_messages_to_ourselves || !ReceivingCall::has_type()) {
      if (const int put = layer.put_bytes(message, room, place); put != success) return put;
      scratch.resize(static_cast<size_t>(length));
      into.buffer = scratch.data();
      into.count = room;
      into.type = handles().byte;
    }
    Request sent{};
    if (twin.is_made() &&
        real.Isend(message, static_cast<int>(length), handles().byte, 0, seen.tag, twin.comm(), &sent) == success) {
      code = ReceivingCall::again(into, twin.comm(), seen.tag, status);  // the end of the job where errors are fatal
      is_raised = true;
      real.Wait(&sent, status_ignore);
    }
  }
  give_status(seen, status);
  real.Status_set_elements_x(status, handles().byte, length);
  return is_raised ? code : raise(place.comm, code);
}

bool errors_of_requests_stray(Comm comm) {
  static const bool strays = is_before_mpich_5() && HandlerFunctions::of_mpi().has_all();
  if (!strays || comm == handles().comm_world || comm == handles().comm_null) return false;
  Errhandler of_world{};
  Errhandler own{};
  const HandlerFunctions& functions = HandlerFunctions::of_mpi();
  if (functions.get_handler(handles().comm_world, &of_world) != success) return false;
  const bool is_known = functions.get_handler(comm, &own) == success;
  const bool strays_here = is_known && (own != of_world || !is_predefined(own));
  functions.free_handler(&of_world);
  if (is_known) functions.free_handler(&own);
  return strays_here;
}

template <EndCall end>
int end_again(const Place& place, Comm comm, int tag, Status* status) {
  Request request{};
  int code = real.Irecv(place.buffer, static_cast<int>(place.count), place.type, 0, tag, comm, &request);
  int is_over = 0;
  int index = 0;
  Status own_status{};
  while (code == success && is_over == 0) {
    if constexpr (end == EndCall::wait) {
      return real.Wait(&request, status);
    } else if constexpr (end == EndCall::test) {
      code = real.Test(&request, &is_over, status);
    } else if constexpr (end == EndCall::waitall) {
      code = real.Waitall(1, &request, &own_status);
      is_over = 1;
    } else if constexpr (end == EndCall::testall) {
      code = real.Testall(1, &request, &is_over, &own_status);
    } else if constexpr (end == EndCall::waitany) {
      return real.Waitany(1, &request, &index, status);
    } else if constexpr (end == EndCall::testany) {
      code = real.Testany(1, &request, &index, &is_over, status);
    } else if constexpr (end == EndCall::waitsome) {
      code = real.Waitsome(1, &request, &is_over, &index, &own_status);
    } else {
      code = real.Testsome(1, &request, &is_over, &index, &own_status);
    }
  }
  return code == error_in_status ? own_status.error : code;
}

template int end_again<EndCall::wait>(const Place&, Comm, int, Status*);
template int end_again<EndCall::test>(const Place&, Comm, int, Status*);
template int end_again<EndCall::waitall>(const Place&, Comm, int, Status*);
template int end_again<EndCall::testall>(const Place&, Comm, int, Status*);
template int end_again<EndCall::waitany>(const Place&, Comm, int, Status*);
template int end_again<EndCall::testany>(const Place&, Comm, int, Status*);
template int end_again<EndCall::waitsome>(const Place&, Comm, int, Status*);
template int end_again<EndCall::testsome>(const Place&, Comm, int, Status*);

}  // namespace spinloom::mpi::SPINLOOM_ABI
