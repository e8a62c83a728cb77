// The known calls of text traces, and the meaning of their arguments.
#include <algorithm>
#include <array>

#include "predict/trace/text_call.hpp"

namespace spinloom::trace {
namespace {

using enum CallForm;

constexpr TextForm form(std::string_view name, Call call, CallForm how, std::string_view arguments) {
  return {name, call, how, arguments};
}
constexpr TextForm makes(std::string_view name, std::string_view arguments, TextGroup group,
                         CallForm how = CallForm::blocking) {
  return {name, Call::Comm_make, how, arguments, group};
}

constexpr std::array forms{
    form("Init", Call::Init, blocking, "__"),
    form("Init_thread", Call::Init, blocking, "____"),
    form("Finalize", Call::Finalize, blocking, ""),
    form("Send", Call::Send, blocking, "bntpgc"),
    form("Ssend", Call::Ssend, blocking, "bntpgc"),
    form("Rsend", Call::Rsend, blocking, "bntpgc"),
    form("Bsend", Call::Bsend, blocking, "bntpgc"),
    form("Isend", Call::Send, nonblocking, "bntpgcq"),
    form("Issend", Call::Ssend, nonblocking, "bntpgcq"),
    form("Irsend", Call::Rsend, nonblocking, "bntpgcq"),
    form("Ibsend", Call::Bsend, nonblocking, "bntpgcq"),
    form("Send_init", Call::Send, persistent, "bntpgcq"),
    form("Ssend_init", Call::Ssend, persistent, "bntpgcq"),
    form("Rsend_init", Call::Rsend, persistent, "bntpgcq"),
    form("Bsend_init", Call::Bsend, persistent, "bntpgcq"),
    form("Recv", Call::Recv, blocking, "bntpgc_"),
    form("Irecv", Call::Recv, nonblocking, "bntpgcq"),
    form("Recv_init", Call::Recv, persistent, "bntpgcq"),
    form("Sendrecv", Call::Sendrecv, blocking, "bntpgbntpgc_"),
    form("Sendrecv_replace", Call::Sendrecv_replace, blocking, "bntpgpgc_"),
    form("Start", Call::Start, blocking, "q"),
    form("Startall", Call::Startall, blocking, "nq"),
    form("Wait", Call::Wait, blocking, "q_"),
    form("Waitall", Call::Waitall, blocking, "nq_"),
    form("Waitany", Call::Waitany, blocking, "nq__"),
    form("Waitsome", Call::Waitsome, blocking, "nq___"),
    form("Test", Call::Test, blocking, "q__"),
    form("Testall", Call::Testall, blocking, "nq__"),
    form("Testany", Call::Testany, blocking, "nq___"),
    form("Testsome", Call::Testsome, blocking, "nq___"),
    form("Request_free", Call::Request_free, blocking, "q"),
    form("Cancel", Call::Cancel, blocking, "q"),
    form("Probe", Call::Probe, blocking, "pgc_"),
    form("Iprobe", Call::Iprobe, blocking, "pgc__"),
    form("Barrier", Call::Barrier, blocking, "c"),
    form("Bcast", Call::Bcast, blocking, "bntrc"),
    form("Gather", Call::Gather, blocking, "bntbntrc"),
    form("Gatherv", Call::Gatherv, blocking, "bntbvdtrc"),
    form("Scatter", Call::Scatter, blocking, "bntbntrc"),
    form("Scatterv", Call::Scatterv, blocking, "bvdtbntrc"),
    form("Allgather", Call::Allgather, blocking, "bntbntc"),
    form("Allgatherv", Call::Allgatherv, blocking, "bntbvdtc"),
    form("Alltoall", Call::Alltoall, blocking, "bntbntc"),
    form("Alltoallv", Call::Alltoallv, blocking, "bvdtbvdtc"),
    form("Reduce", Call::Reduce, blocking, "bbnt_rc"),
    form("Allreduce", Call::Allreduce, blocking, "bbnt_c"),
    form("Reduce_scatter_block", Call::Reduce_scatter_block, blocking, "bbnt_c"),
    form("Scan", Call::Scan, blocking, "bbnt_c"),
    form("Exscan", Call::Exscan, blocking, "bbnt_c"),
    form("Ibarrier", Call::Barrier, nonblocking, "cq"),
    form("Ibcast", Call::Bcast, nonblocking, "bntrcq"),
    form("Igather", Call::Gather, nonblocking, "bntbntrcq"),
    form("Iscatter", Call::Scatter, nonblocking, "bntbntrcq"),
    form("Iallgather", Call::Allgather, nonblocking, "bntbntcq"),
    form("Ialltoall", Call::Alltoall, nonblocking, "bntbntcq"),
    form("Ireduce", Call::Reduce, nonblocking, "bbnt_rcq"),
    form("Iallreduce", Call::Allreduce, nonblocking, "bbnt_cq"),
    form("Ireduce_scatter_block", Call::Reduce_scatter_block, nonblocking, "bbnt_cq"),
    form("Iscan", Call::Scan, nonblocking, "bbnt_cq"),
    form("Iexscan", Call::Exscan, nonblocking, "bbnt_cq"),
    makes("Comm_dup", "cm", TextGroup::same),
    makes("Comm_dup_with_info", "c_m", TextGroup::same),
    makes("Comm_split", "ciim", TextGroup::split),
    makes("Cart_create", "c____m", TextGroup::reordered),
    makes("Graph_create", "c____m", TextGroup::reordered),
    makes("Dist_graph_create", "c_______m", TextGroup::reordered),
    makes("Dist_graph_create_adjacent", "c________m", TextGroup::reordered),
    makes("Comm_create", "c_m", TextGroup::untold),
    makes("Comm_split_type", "c___m", TextGroup::untold),
    makes("Cart_sub", "c_m", TextGroup::untold),
    form("Comm_free", Call::Comm_free, blocking, "m"),
    form("Comm_disconnect", Call::Comm_free, blocking, "m"),
};

// Local calls are recognised by the beginnings of their names.
constexpr std::array<std::string_view, 26> local_beginnings{
    "Wti",         "Comm_rank",   "Comm_size",    "Comm_group",   "Comm_compare",  "Comm_get_",   "Comm_set_",
    "Comm_test_",  "Comm_remote", "Comm_create_", "Comm_delete_", "Comm_free_",    "Comm_call_",  "Get_",
    "Type_",       "Op_",         "Group_",       "Attr_",        "Keyval_",       "Errhandler_", "Error_",
    "Initialized", "Finalized",   "Address",      "Buffer_",      "Test_cancelled"};
constexpr std::array<std::string_view, 14> more_local_beginnings{
    "Pack",        "Unpack",      "Cart_get", "Cart_rank",     "Cart_coords", "Cart_shift", "Cart_map",
    "Cartdim_get", "Dims_create", "Graph_",   "Graphdims_get", "Topo_test",   "Info_",      "Query_thread"};

}  // namespace

const TextForm* form_of(std::string_view name) {
  if (!name.starts_with("MPI_")) return nullptr;
  const auto found = std::ranges::find(forms, name.substr(4), &TextForm::name);
  return found == forms.end() ? nullptr : &*found;
}

bool is_local(std::string_view name) {
  const auto begins = [name](std::string_view beginning) { return name.substr(4).starts_with(beginning); };
  return std::ranges::any_of(local_beginnings, begins) || std::ranges::any_of(more_local_beginnings, begins);
}

}  // namespace spinloom::trace
