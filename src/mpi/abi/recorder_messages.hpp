// Rules for point-to-point calls: what goes from the arguments of each into its signature.
#pragma once

#include <optional>

#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

struct Send : Rule {
  template <class N, class... More>
  void after(trace::Signature& to, const void* buffer, N count, Datatype type, int peer, int tag, Comm comm,
             More... more) {
    to.comm = recorder.comm(comm).number;
    to.peer = Recorder::peer(peer);
    to.tag = tag;
    to.sends.push_back(block_of(buffer, count, type));
    made_request(to, false, more...);
  }
};

[[nodiscard]] inline bool asks_any(int source, int tag) { return source == any_source || tag == any_tag; }

// A status of our own, where the program wants none and the trace needs one.
class OwnStatus {
 public:
  void replace(Status*& theirs, bool wanted) {
    if (wanted && theirs == status_ignore) theirs = &own_;
  }

 private:
  Status own_{};
};

struct Receive : Rule {
  template <class N>
  void before(void*&, N&, Datatype&, int& source, int& tag, Comm&, Status*& status) {
    own_.replace(status, asks_any(source, tag));
  }
  template <class N>
  void after(trace::Signature& to, void* buffer, N count, Datatype type, int source, int tag, Comm comm,
             Status* status) {
    if (asks_any(source, tag)) to.matches.push_back(recorder.match_of(*status));
    fill(to, buffer, count, type, source, tag, comm);
  }
  static void fill(trace::Signature& to, void* buffer, int64_t count, Datatype type, int source, int tag, Comm comm) {
    to.comm = recorder.comm(comm).number;
    to.peer = Recorder::peer(source);
    to.tag = Recorder::tag(tag);
    to.receives.push_back(block_of(buffer, count, type));
  }

 private:
  OwnStatus own_;
};

struct ReceiveLater : Rule {
  template <class N>
  void after(trace::Signature& to, void* buffer, N count, Datatype type, int source, int tag, Comm comm,
             Request* request) {
    Receive::fill(to, buffer, count, type, source, tag, comm);
    made_request(to, asks_any(source, tag), request);
  }
};

// A receive of a message that MPI_Mprobe has matched: the match says whose message it is.
class Matched : public Rule {
 protected:
  // Called before the call, because when it has ended, another thread may have a message of the same handle.
  void look(MessageHandle* message) { known_ = recorder.take_message(key_of(*message)); }
  void fill(trace::Signature& to, void* buffer, int64_t count, Datatype type) {
    if (known_) {
      to.comm = known_->comm;
      to.peer = known_->match.source;
      to.tag = known_->match.tag;
      to.matches.push_back(known_->match);
    } else {
      to.peer = trace::nobody;
    }
    to.receives.push_back(block_of(buffer, count, type));
  }

 private:
  std::optional<Recorder::Message> known_;
};
struct ReceiveMatched : Matched {
  template <class N>
  void before(void*&, N&, Datatype&, MessageHandle*& message, Status*&) {
    look(message);
  }
  template <class N>
  void after(trace::Signature& to, void* buffer, N count, Datatype type, MessageHandle*, Status*) {
    fill(to, buffer, count, type);
  }
};
struct ReceiveMatchedLater : Matched {
  template <class N>
  void before(void*&, N&, Datatype&, MessageHandle*& message, Request*&) {
    look(message);
  }
  template <class N>
  void after(trace::Signature& to, void* buffer, N count, Datatype type, MessageHandle*, Request* request) {
    fill(to, buffer, count, type);
    made_request(to, false, request);
    if (!to.matches.empty() && !to.requests.empty()) to.matches[0].request = to.requests[0];
  }
};

// Fills in both ends of a call that sends and receives.
inline void fill_both(trace::Signature& to, int peer, int tag, int source, int receive_tag, Comm comm) {
  to.comm = recorder.comm(comm).number;
  to.peer = Recorder::peer(peer);
  to.tag = tag;
  to.receive_peer = Recorder::peer(source);
  to.receive_tag = Recorder::tag(receive_tag);
}
class Both : public Rule {
 public:
  void before(auto&...) {}
  void fill(trace::Signature& to, int source, int tag, Status* status) {
    if (asks_any(source, tag)) to.matches.push_back(recorder.match_of(*status));
  }
  void fill(trace::Signature& to, int source, int tag, Request* request) {
    made_request(to, asks_any(source, tag), request);
  }

 protected:
  OwnStatus own_;
};
// The last argument, of type Last, is the address of the status, or of the request.
struct SendReceive : Both {
  using Both::before;
  template <class N>
  void before(const void*&, N&, Datatype&, int&, int&, void*&, N&, Datatype&, int& source, int& tag, Comm&,
              Status*& status) {
    own_.replace(status, asks_any(source, tag));
  }
  template <class N, class Last>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, int peer, int tag, void* in,
             N in_count, Datatype in_type, int source, int in_tag, Comm comm, Last* last) {
    fill_both(to, peer, tag, source, in_tag, comm);
    to.sends.push_back(block_of(out, out_count, out_type));
    to.receives.push_back(block_of(in, in_count, in_type));
    fill(to, source, in_tag, last);
  }
};
struct Replace : Both {
  using Both::before;
  template <class N>
  void before(void*&, N&, Datatype&, int&, int&, int& source, int& tag, Comm&, Status*& status) {
    own_.replace(status, asks_any(source, tag));
  }
  template <class N, class Last>
  void after(trace::Signature& to, void* buffer, N count, Datatype type, int peer, int tag, int source, int in_tag,
             Comm comm, Last* last) {
    fill_both(to, peer, tag, source, in_tag, comm);
    to.sends.push_back(block_of(buffer, count, type));
    to.receives = to.sends;
    fill(to, source, in_tag, last);
  }
};

class ProbeRule : public Rule {
 protected:
  static void fill(trace::Signature& to, int source, int tag, Comm comm) {
    to.comm = recorder.comm(comm).number;
    to.peer = Recorder::peer(source);
    to.tag = Recorder::tag(tag);
  }
  static void keep(const trace::Signature& to, MessageHandle message) {
    if (message == handles().message_no_proc) return;
    recorder.messages().put(key_of(message), {to.comm, to.matches[0]});
  }
  OwnStatus own_;
};
struct Probe : ProbeRule {
  void before(int&, int&, Comm&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& to, int source, int tag, Comm comm, Status* status) {
    fill(to, source, tag, comm);
    to.matches.push_back(recorder.match_of(*status));
  }
};
struct TryProbe : ProbeRule {
  void before(int&, int&, Comm&, int*&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& to, int source, int tag, Comm comm, int* flag, Status* status) {
    fill(to, source, tag, comm);
    if (*flag == 0) return recorder.mark_as_poll();
    to.matches.push_back(recorder.match_of(*status));
  }
};
struct MatchProbe : ProbeRule {
  void before(int&, int&, Comm&, MessageHandle*&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& to, int source, int tag, Comm comm, MessageHandle* message, Status* status) {
    fill(to, source, tag, comm);
    to.matches.push_back(recorder.match_of(*status));
    keep(to, *message);
  }
};
struct TryMatchProbe : ProbeRule {
  void before(int&, int&, Comm&, int*&, MessageHandle*&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& to, int source, int tag, Comm comm, int* flag, MessageHandle* message, Status* status) {
    fill(to, source, tag, comm);
    if (*flag == 0) return recorder.mark_as_poll();
    to.matches.push_back(recorder.match_of(*status));
    keep(to, *message);
  }
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
