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
    signature_.call = call_.form->call;
    signature_.form = call_.form->call_form;
    signature_.comm = facts_.comm;
    SPL_TRY(fill_ends());
    return std::move(signature_);
  }

 private:
  Status fill_ends() {
    switch (signature_.call) {
      case Call::Send:
      case Call::Ssend:
      case Call::Rsend:
      case Call::Bsend: {
        SPL_TRY(set_peer(call_.ends[0], false, signature_.peer, signature_.tag));
        signature_.sends.push_back(block(call_.ends[0]));
        return {};
      }
      case Call::Recv: {
        SPL_TRY(set_peer(call_.ends[0], true, signature_.peer, signature_.tag));
        signature_.receives.push_back(block(call_.ends[0]));
        return {};
      }
      case Call::Probe:
      case Call::Iprobe: return set_peer(call_.ends[0], true, signature_.peer, signature_.tag);
      case Call::Sendrecv:
      case Call::Sendrecv_replace: {
        SPL_TRY(set_peer(call_.ends[0], false, signature_.peer, signature_.tag));
        SPL_TRY(set_peer(call_.ends[1], true, signature_.receive_peer, signature_.receive_tag));
        signature_.sends.push_back(block(call_.ends[0]));
        signature_.receives.push_back(block(call_.ends[1]));
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
        SPL_TRY(add_blocks(signature_.sends, call_.ends[0]));
        return add_blocks(signature_.receives, call_.ends[1]);
      }
      case Call::Reduce: {
        SPL_TRY(set_root());
        add_operand(1);
        if (is_root()) signature_.receives.push_back(block(call_.ends[1]));
        return {};
      }
      case Call::Allreduce:
      case Call::Scan:
      case Call::Exscan: {
        add_operand(1);
        signature_.receives.push_back(block(call_.ends[1]));
        return {};
      }
      case Call::Reduce_scatter_block: {
        add_operand(call_.comm.size);
        signature_.receives.push_back(block(call_.ends[1]));
        return {};
      }
      default: return {};
    }
  }

  Status fill_rooted() {
    SPL_TRY(set_root());
    const bool is_root = this->is_root();
    switch (signature_.call) {
      case Call::Bcast: (is_root ? signature_.sends : signature_.receives).push_back(block(call_.ends[0])); return {};
      case Call::Gather:
      case Call::Gatherv: {
        SPL_TRY(add_blocks(signature_.sends, call_.ends[0]));
        return is_root ? add_blocks(signature_.receives, call_.ends[1]) : Status{};
      }
      default: {
        if (is_root) SPL_TRY(add_blocks(signature_.sends, call_.ends[0]));
        return add_blocks(signature_.receives, call_.ends[1]);
      }
    }
  }

  [[nodiscard]] bool is_root() const { return call_.root == static_cast<int32_t>(call_.comm.rank); }
  Status set_root() {
    if (call_.root < 0 || call_.root >= static_cast<int32_t>(call_.comm.size))
      return outside_error("the root is", call_.root);
    signature_.peer = call_.root;
    return {};
  }
  Status set_peer(const TextEnd& end, bool receives, int32_t& peer, int32_t& tag) const {
    if (end.peer >= static_cast<int32_t>(call_.comm.size)) return outside_error("its peer is", end.peer);
    const int32_t any_source = facts_.is_mpich ? -2 : -1;
    peer = end.peer >= 0 ? end.peer : receives && end.peer == any_source ? any : nobody;
    tag = end.tag < 0 ? any : end.tag;
    return {};
  }
  [[nodiscard]] Error outside_error(std::string_view what, int32_t rank) const {
    return fail(Code::invalid, "MPI_", call_.form->name, ": ", what, " rank ", rank, " of a communicator of ",
                call_.comm.size);
  }

  [[nodiscard]] Block block(const TextEnd& end) const {
    return {end.buffer, end.counts.empty() ? 0 : end.counts[0], facts_.type_of(end.type)};
  }
  // Puts one block, or one for each rank.
  Status add_blocks(std::vector<Block>& blocks, const TextEnd& end) {
    if (is_in_place(end)) {
      signature_.in_place = true;
      return {};
    }
    if (end.displacements.empty()) {
      blocks.push_back(block(end));
      return {};
    }
    if (end.counts.size() != call_.comm.size || end.displacements.size() != call_.comm.size) {
      return fail(Code::invalid, "MPI_", call_.form->name, " has ", end.counts.size(), " counts and ",
                  end.displacements.size(), " displacements for a communicator of ", call_.comm.size);
    }
    const uint32_t type = facts_.type_of(end.type);
    for (size_t i = 0; i < end.counts.size(); ++i) {
      const auto displacement = static_cast<uint64_t>(end.displacements[i]) * static_cast<uint64_t>(end.type.extent);
      blocks.push_back({end.buffer + displacement, end.counts[i], type});
    }
    return {};
  }
  void add_operand(uint32_t times) {
    signature_.in_place = is_in_place(call_.ends[0]);
    Block operand = block(call_.ends[0]);
    if (signature_.in_place) operand.address = call_.ends[1].buffer;
    operand.count *= times;
    signature_.sends.push_back(operand);
  }

  const TextCall& call_;
  const TextFacts& facts_;
  Signature signature_;
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
    entry.signature_hash = Sequence::basic(entry.name, type.size).hash();
    return entry;
  }
  SPL_ASSIGN(const layout::Type byte, layout::primitive("byte"));
  SPL_ASSIGN(const layout::Type bytes, layout::contiguous(type.size, byte));
  SPL_ASSIGN(const layout::Type resized, layout::resized(0, type.extent, bytes));
  SPL_ASSIGN(const layout::Blob blob, layout::Blob::build(resized));
  entry.blob.assign(blob.bytes().begin(), blob.bytes().end());
  return entry;
}

}  // namespace spinloom::trace
