#include "predict/trace/text_signature.hpp"

#include <array>

#include "memory/layout/blob.hpp"
#include "memory/layout/type.hpp"
#include "predict/trace/sequence.hpp"

namespace spinloom::trace {
namespace {

// The wrapper's numbers of basic types, from 1 on. 21 is both MPI_COMPLEX and MPI_CHARACTER.
constexpr std::array<std::string_view, 23> basic_names{"",
                                                       "MPI_INT",
                                                       "MPI_INTEGER",
                                                       "MPI_LONG",
                                                       "MPI_SHORT",
                                                       "MPI_UNSIGNED",
                                                       "MPI_UNSIGNED_LONG",
                                                       "MPI_UNSIGNED_SHORT",
                                                       "MPI_FLOAT",
                                                       "MPI_REAL",
                                                       "MPI_DOUBLE",
                                                       "MPI_DOUBLE_PRECISION",
                                                       "MPI_LONG_DOUBLE",
                                                       "MPI_BYTE",
                                                       "MPI_FLOAT_INT",
                                                       "MPI_DOUBLE_INT",
                                                       "MPI_LONG_INT",
                                                       "MPI_2INT",
                                                       "MPI_SHORT_INT",
                                                       "MPI_LONG_DOUBLE_INT",
                                                       "MPI_LOGICAL",
                                                       "MPI_COMPLEX",
                                                       "MPI_DOUBLE_COMPLEX"};

bool is_in_place(const TextEnd& end) { return end.buffer == 1 || end.buffer == UINT64_MAX; }

class SignatureFiller {
 public:
  SignatureFiller(const TextCall& call, const TextFacts& facts) : call_(call), facts_(facts) {}

  Result<Signature> fill() {
    made_.call = call_.form->call;
    made_.form = call_.form->form;
    made_.comm = facts_.comm;
    SPL_TRY(fill_ends());
    return std::move(made_);
  }

 private:
  Status fill_ends() {
    switch (made_.call) {
      case Call::Send:
      case Call::Ssend:
      case Call::Rsend:
      case Call::Bsend: {
        SPL_TRY(put_peer(call_.ends[0], false, made_.peer, made_.tag));
        made_.sends.push_back(block(call_.ends[0]));
        return {};
      }
      case Call::Recv: {
        SPL_TRY(put_peer(call_.ends[0], true, made_.peer, made_.tag));
        made_.receives.push_back(block(call_.ends[0]));
        return {};
      }
      case Call::Probe:
      case Call::Iprobe: return put_peer(call_.ends[0], true, made_.peer, made_.tag);
      case Call::Sendrecv:
      case Call::Sendrecv_replace: {
        SPL_TRY(put_peer(call_.ends[0], false, made_.peer, made_.tag));
        SPL_TRY(put_peer(call_.ends[1], true, made_.receive_peer, made_.receive_tag));
        made_.sends.push_back(block(call_.ends[0]));
        made_.receives.push_back(block(call_.ends[1]));
        return {};
      }
      case Call::Bcast:
      case Call::Gather:
      case Call::Gatherv:
      case Call::Scatter:
      case Call::Scatterv: return fill_rooted();
      case Call::Allgather:
      case Call::Allgatherv:
      case Call::Alltoall:
      case Call::Alltoallv: {
        SPL_TRY(put(made_.sends, call_.ends[0]));
        return put(made_.receives, call_.ends[1]);
      }
      case Call::Reduce: {
        SPL_TRY(put_root());
        put_operand(1);
        if (is_root()) made_.receives.push_back(block(call_.ends[1]));
        return {};
      }
      case Call::Allreduce:
      case Call::Scan:
      case Call::Exscan: {
        put_operand(1);
        made_.receives.push_back(block(call_.ends[1]));
        return {};
      }
      case Call::Reduce_scatter_block: {
        put_operand(call_.comm.size);
        made_.receives.push_back(block(call_.ends[1]));
        return {};
      }
      default: return {};
    }
  }

  Status fill_rooted() {
    SPL_TRY(put_root());
    const bool is_root = this->is_root();
    switch (made_.call) {
      case Call::Bcast: (is_root ? made_.sends : made_.receives).push_back(block(call_.ends[0])); return {};
      case Call::Gather:
      case Call::Gatherv: {
        SPL_TRY(put(made_.sends, call_.ends[0]));
        return is_root ? put(made_.receives, call_.ends[1]) : Status{};
      }
      default: {
        if (is_root) SPL_TRY(put(made_.sends, call_.ends[0]));
        return put(made_.receives, call_.ends[1]);
      }
    }
  }

  [[nodiscard]] bool is_root() const { return call_.root == static_cast<int32_t>(call_.comm.rank); }
  Status put_root() {
    if (call_.root < 0 || call_.root >= static_cast<int32_t>(call_.comm.size))
      return outside("the root is", call_.root);
    made_.peer = call_.root;
    return {};
  }
  Status put_peer(const TextEnd& end, bool receives, int32_t& peer, int32_t& tag) const {
    if (end.peer >= static_cast<int32_t>(call_.comm.size)) return outside("its peer is", end.peer);
    const int32_t any_source = facts_.is_mpich ? -2 : -1;
    peer = end.peer >= 0 ? end.peer : receives && end.peer == any_source ? any : nobody;
    tag = end.tag < 0 ? any : end.tag;
    return {};
  }
  [[nodiscard]] Error outside(std::string_view what, int32_t rank) const {
    return fail(Code::invalid, "MPI_", call_.form->name, ": ", what, " rank ", rank, " of a communicator of ",
                call_.comm.size);
  }

  [[nodiscard]] Block block(const TextEnd& end) const {
    return {end.buffer, end.counts.empty() ? 0 : end.counts[0], facts_.type_of(end.type)};
  }
  // Puts one block, or one for each rank.
  Status put(std::vector<Block>& blocks, const TextEnd& end) {
    if (is_in_place(end)) {
      made_.in_place = true;
      return {};
    }
    if (end.places.empty()) {
      blocks.push_back(block(end));
      return {};
    }
    if (end.counts.size() != call_.comm.size || end.places.size() != call_.comm.size) {
      return fail(Code::invalid, "MPI_", call_.form->name, " has ", end.counts.size(), " counts and ",
                  end.places.size(), " displacements for a communicator of ", call_.comm.size);
    }
    const uint32_t type = facts_.type_of(end.type);
    for (size_t i = 0; i < end.counts.size(); ++i) {
      const auto step = static_cast<uint64_t>(end.places[i]) * static_cast<uint64_t>(end.type.extent);
      blocks.push_back({end.buffer + step, end.counts[i], type});
    }
    return {};
  }
  void put_operand(uint32_t times) {
    made_.in_place = is_in_place(call_.ends[0]);
    Block operand = block(call_.ends[0]);
    if (made_.in_place) operand.address = call_.ends[1].buffer;
    operand.count *= times;
    made_.sends.push_back(operand);
  }

  const TextCall& call_;
  const TextFacts& facts_;
  Signature made_;
};

}  // namespace

Result<Signature> signature_of(const TextCall& call, const TextFacts& facts) {
  return SignatureFiller(call, facts).fill();
}

Result<TypeEntry> entry_of(const TextType& type) {
  TypeEntry entry;
  entry.size_bytes = type.size;
  entry.extent_bytes = type.extent;
  if (type.number > 0 && type.number < basic_names.size()) {
    const bool is_character = type.number == 21 && type.size == 1;
    entry.name = is_character ? "MPI_CHARACTER" : std::string(basic_names[type.number]);
    entry.signature_hash = Sequence::one(entry.name, type.size).hash();
    return entry;
  }
  SPL_ASSIGN(const layout::Type byte, layout::primitive("byte"));
  SPL_ASSIGN(const layout::Type bytes, layout::contiguous(type.size, byte));
  SPL_ASSIGN(const layout::Type whole, layout::resized(0, type.extent, bytes));
  SPL_ASSIGN(const layout::Blob blob, layout::Blob::build(whole));
  entry.blob.assign(blob.bytes().begin(), blob.bytes().end());
  return entry;
}

}  // namespace spinloom::trace
