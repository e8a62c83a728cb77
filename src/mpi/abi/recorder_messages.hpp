// Rules for point-to-point calls: what goes from the arguments of each into its signature.
#pragma once

#include <optional>

#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

struct Send : Rule {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* buffer, N count, Datatype type, int peer, int tag, Comm comm,
             More... more) {
    signature.comm = recorder.comm(comm).number;
    signature.peer = Recorder::peer(peer);
    signature.tag = tag;
    signature.sends.push_back(block_of(buffer, count, type));
    note_request(signature, false, more...);
  }
};

[[nodiscard]] inline bool has_wildcard(int source, int tag) { return source == any_source || tag == any_tag; }

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
    own_.replace(status, has_wildcard(source, tag));
  }
  template <class N>
  void after(trace::Signature& signature, void* buffer, N count, Datatype type, int source, int tag, Comm comm,
             Status* status) {
    if (has_wildcard(source, tag)) signature.matches.push_back(recorder.match_of(*status));
    fill(signature, buffer, count, type, source, tag, comm);
  }
  static void fill(trace::Signature& signature, void* buffer, int64_t count, Datatype type, int source, int tag,
                   Comm comm) {
    signature.comm = recorder.comm(comm).number;
    signature.peer = Recorder::peer(source);
    signature.tag = Recorder::tag(tag);
    signature.receives.push_back(block_of(buffer, count, type));
  }

 private:
  OwnStatus own_;
};

struct ReceiveLater : Rule {
  template <class N>
  void after(trace::Signature& signature, void* buffer, N count, Datatype type, int source, int tag, Comm comm,
             Request* request) {
    Receive::fill(signature, buffer, count, type, source, tag, comm);
    note_request(signature, has_wildcard(source, tag), request);
  }
};

// A receive of a message that MPI_Mprobe has matched: the match says whose message it is.
class MatchedRule : public Rule {
 protected:
  // Called before the call, because when it has ended, another thread may have a message of the same handle.
  void look(MessageHandle* message) { matched_ = recorder.take_message(key_of(*message)); }
  void fill(trace::Signature& signature, void* buffer, int64_t count, Datatype type) {
    if (matched_) {
      signature.comm = matched_->comm;
      signature.peer = matched_->match.source;
      signature.tag = matched_->match.tag;
      signature.matches.push_back(matched_->match);
    } else {
      signature.peer = trace::nobody;
    }
    signature.receives.push_back(block_of(buffer, count, type));
  }

 private:
  std::optional<Recorder::Message> matched_;
};
struct ReceiveMatched : MatchedRule {
  template <class N>
  void before(void*&, N&, Datatype&, MessageHandle*& message, Status*&) {
    look(message);
  }
  template <class N>
  void after(trace::Signature& signature, void* buffer, N count, Datatype type, MessageHandle*, Status*) {
    fill(signature, buffer, count, type);
  }
};
struct ReceiveMatchedLater : MatchedRule {
  template <class N>
  void before(void*&, N&, Datatype&, MessageHandle*& message, Request*&) {
    look(message);
  }
  template <class N>
  void after(trace::Signature& signature, void* buffer, N count, Datatype type, MessageHandle*, Request* request) {
    fill(signature, buffer, count, type);
    note_request(signature, false, request);
    if (!signature.matches.empty() && !signature.requests.empty()) signature.matches[0].request = signature.requests[0];
  }
};

// Fills in both ends of a call that sends and receives.
inline void fill_both(trace::Signature& signature, int peer, int tag, int source, int receive_tag, Comm comm) {
  signature.comm = recorder.comm(comm).number;
  signature.peer = Recorder::peer(peer);
  signature.tag = tag;
  signature.receive_peer = Recorder::peer(source);
  signature.receive_tag = Recorder::tag(receive_tag);
}
class SendReceiveRule : public Rule {
 public:
  void before(auto&...) {}
  void fill(trace::Signature& signature, int source, int tag, Status* status) {
    if (has_wildcard(source, tag)) signature.matches.push_back(recorder.match_of(*status));
  }
  void fill(trace::Signature& signature, int source, int tag, Request* request) {
    note_request(signature, has_wildcard(source, tag), request);
  }

 protected:
  OwnStatus own_;
};
// The last argument, of type Last, is the address of the status, or of the request.
struct SendReceive : SendReceiveRule {
  using SendReceiveRule::before;
  template <class N>
  void before(const void*&, N&, Datatype&, int&, int&, void*&, N&, Datatype&, int& source, int& tag, Comm&,
              Status*& status) {
    own_.replace(status, has_wildcard(source, tag));
  }
  template <class N, class Last>
  void after(trace::Signature& signature, const void* out, N out_count, Datatype out_type, int peer, int tag, void* in,
             N in_count, Datatype in_type, int source, int in_tag, Comm comm, Last* last) {
    fill_both(signature, peer, tag, source, in_tag, comm);
    signature.sends.push_back(block_of(out, out_count, out_type));
    signature.receives.push_back(block_of(in, in_count, in_type));
    fill(signature, source, in_tag, last);
  }
};
struct Replace : SendReceiveRule {
  using SendReceiveRule::before;
  template <class N>
  void before(void*&, N&, Datatype&, int&, int&, int& source, int& tag, Comm&, Status*& status) {
    own_.replace(status, has_wildcard(source, tag));
  }
  template <class N, class Last>
  void after(trace::Signature& signature, void* buffer, N count, Datatype type, int peer, int tag, int source,
             int in_tag, Comm comm, Last* last) {
    fill_both(signature, peer, tag, source, in_tag, comm);
    signature.sends.push_back(block_of(buffer, count, type));
    signature.receives = signature.sends;
    fill(signature, source, in_tag, last);
  }
};

class ProbeRule : public Rule {
 protected:
  static void fill(trace::Signature& signature, int source, int tag, Comm comm) {
    signature.comm = recorder.comm(comm).number;
    signature.peer = Recorder::peer(source);
    signature.tag = Recorder::tag(tag);
  }
  static void keep_match(const trace::Signature& signature, MessageHandle message) {
    if (message == handles().message_no_proc) return;
    recorder.messages().put(key_of(message), {signature.comm, signature.matches[0]});
  }
  OwnStatus own_;
};
struct Probe : ProbeRule {
  void before(int&, int&, Comm&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& signature, int source, int tag, Comm comm, Status* status) {
    fill(signature, source, tag, comm);
    signature.matches.push_back(recorder.match_of(*status));
  }
};
struct TryProbe : ProbeRule {
  void before(int&, int&, Comm&, int*&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& signature, int source, int tag, Comm comm, int* flag, Status* status) {
    fill(signature, source, tag, comm);
    if (*flag == 0) return recorder.mark_as_poll();
    signature.matches.push_back(recorder.match_of(*status));
  }
};
struct MatchProbe : ProbeRule {
  void before(int&, int&, Comm&, MessageHandle*&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& signature, int source, int tag, Comm comm, MessageHandle* message, Status* status) {
    fill(signature, source, tag, comm);
    signature.matches.push_back(recorder.match_of(*status));
    keep_match(signature, *message);
  }
};
struct TryMatchProbe : ProbeRule {
  void before(int&, int&, Comm&, int*&, MessageHandle*&, Status*& status) { own_.replace(status, true); }
  void after(trace::Signature& signature, int source, int tag, Comm comm, int* flag, MessageHandle* message,
             Status* status) {
    fill(signature, source, tag, comm);
    if (*flag == 0) return recorder.mark_as_poll();
    signature.matches.push_back(recorder.match_of(*status));
    keep_match(signature, *message);
  }
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
