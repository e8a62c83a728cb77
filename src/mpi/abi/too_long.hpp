// TooLong - a message that does not fit into its receive.
//
// It is sent to ourselves, and the MPI itself receives it again and cuts it, so that the error's code and text and the
// name of the call are the MPI's own.
//
// Contract: too_long() takes the packed bytes of the whole message, and returns what the program's call returns. Where
//   the message is null or longer than `too_long_max`, the layer raises the error itself. A ReceivingCallBy says,
//   while it lives, by which call the program learns of messages: it makes the same call again for a place, on a
//   communicator of this rank alone and a tag. The outermost one of a thread counts; without one it is MPI_Wait.
// Invariants: (1) the status has the true source, tag and size; (2) the communicator's error handler is called once,
//   and gets the program's communicator if it is a function of the program's. Threads: any. Time: none.
#pragma once

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// Longer messages are not put together for this.
inline constexpr int64_t too_long_max = int64_t{256} << 20;

[[nodiscard]] int too_long(const uint8_t* message, int64_t length, const Place& place, Status* status);

// True where the MPI would give an error of the communicator to MPI_COMM_WORLD's handler, and name that communicator,
// if the error were found by the end of a request, and the program would see the difference. MPICH 4 does so.
[[nodiscard]] bool errors_of_requests_stray(Comm comm);

class ReceivingCall {
 public:
  using Again = int(const void* call_object, const Place& place, Comm comm, int tag, Status* status);
  ReceivingCall(const ReceivingCall&) = delete;
  ReceivingCall& operator=(const ReceivingCall&) = delete;

  [[nodiscard]] static int again(const Place& place, Comm comm, int tag, Status* status);
  // False: the program may have freed the place's type since it made the request.
  [[nodiscard]] static bool has_type() { return current_ != nullptr && !current_->ends_request_; }

 protected:
  ReceivingCall(Again* call, const void* call_object, bool ends_request)
      : again_(call), call_object_(call_object), ends_request_(ends_request) {
    if (current_ == nullptr) current_ = this;
  }
  ~ReceivingCall() {
    if (current_ == this) current_ = nullptr;
  }

 private:
  static inline thread_local const ReceivingCall* current_ = nullptr;
  Again* again_;
  const void* call_object_;
  bool ends_request_;
};

template <class Call>
class ReceivingCallBy : public ReceivingCall {
 public:
  explicit ReceivingCallBy(Call call)
      : ReceivingCall([](const void* call_object, const Place& place, Comm comm, int tag,
                         Status* status) { return (*static_cast<const Call*>(call_object))(place, comm, tag, status); },
                      &call_, requires { Call::ends_request; }),
        call_(call) {}

 private:
  Call call_;
};

template <class N>
inline constexpr auto by_recv = [](const Place& place, Comm comm, int tag, Status* status) {
  return real.counted<N>().Recv(place.buffer, static_cast<N>(place.count), place.type, 0, tag, comm, status);
};
template <class N>
inline constexpr auto by_mrecv = [](const Place& place, Comm comm, int tag, Status* status) {
  MessageHandle message{};
  const int code = real.Mprobe(0, tag, comm, &message, status_ignore);
  if (code != success) return code;
  return real.counted<N>().Mrecv(place.buffer, static_cast<N>(place.count), place.type, &message, status);
};
template <class N>
inline constexpr auto by_sendrecv = [](const Place& place, Comm comm, int tag, Status* status) {
  return real.counted<N>().Sendrecv(nullptr, 0, handles().byte, proc_null, 0, place.buffer, static_cast<N>(place.count),
                                    place.type, 0, tag, comm, status);
};
template <class N>
inline constexpr auto by_sendrecv_replace = [](const Place& place, Comm comm, int tag, Status* status) {
  return real.counted<N>().Sendrecv_replace(place.buffer, static_cast<N>(place.count), place.type, proc_null, 0, 0, tag,
                                            comm, status);
};

// Calls that end requests.
enum class EndCall : uint8_t { wait, test, waitall, testall, waitany, testany, waitsome, testsome };
template <EndCall end>
int end_again(const Place& place, Comm comm, int tag, Status* status);
template <EndCall end>
struct ByEnd {
  static constexpr bool ends_request = true;
  int operator()(const Place& place, Comm comm, int tag, Status* status) const {
    return end_again<end>(place, comm, tag, status);
  }
};
template <EndCall end>
inline constexpr ByEnd<end> by_end;

}  // namespace spinloom::mpi::SPINLOOM_ABI
