#include "ethernet/port/bpf.hpp"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

namespace spinloom::port {

namespace {

constexpr uint32_t tcx_ingress = 46;  // BPF_TCX_INGRESS; headers of Linux before 6.6 do not have it
constexpr int32_t action_shot = 2;    // TC_ACT_SHOT
constexpr int32_t queue_index_at = 16;  // the place in struct xdp_md

int call(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

Error kernel_refusal(const char* what) {
  const int error = errno;
  if (error == EPERM || error == EACCES) {
    return fail(Code::environment, "the kernel does not let this process ", what,
                ": that needs root outside of user namespaces (CAP_BPF and CAP_NET_ADMIN)");
  }
  return fail(Code::environment, "the kernel cannot ", what, ": ", std::strerror(error));
}

Result<Descriptor> load(bpf_prog_type type, std::span<const bpf_insn> program) {
  static constexpr char license[] = "BSD";
  bpf_attr attributes{};
  attributes.prog_type = type;
  attributes.insn_cnt = static_cast<uint32_t>(program.size());
  attributes.insns = reinterpret_cast<uint64_t>(program.data());
  attributes.license = reinterpret_cast<uint64_t>(license);
  Descriptor out(call(BPF_PROG_LOAD, attributes));
  if (!out) return kernel_refusal("load a BPF program");
  return out;
}

Result<Descriptor> attach(const Descriptor& program, int interface_index, uint32_t attach_type, uint32_t flags) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<uint32_t>(program.number());
  attributes.link_create.target_ifindex = static_cast<uint32_t>(interface_index);
  attributes.link_create.attach_type = attach_type;
  attributes.link_create.flags = flags;
  Descriptor out(call(BPF_LINK_CREATE, attributes));
  if (!out) return kernel_refusal("attach a BPF program to the interface");
  return out;
}

template <uint8_t Register>
constexpr bpf_insn set(int32_t value) {
  return {BPF_ALU64 | BPF_MOV | BPF_K, Register, 0, 0, value};
}
constexpr bpf_insn call_kernel(int32_t function) { return {BPF_JMP | BPF_CALL, 0, 0, 0, function}; }
constexpr bpf_insn exit_program{BPF_JMP | BPF_EXIT, 0, 0, 0, 0};

}  // namespace

Result<Descriptor> bpf_drop_ingress(int interface_index) {
  constexpr std::array program{set<BPF_REG_0>(action_shot), exit_program};
  SPL_ASSIGN(const Descriptor loaded, load(BPF_PROG_TYPE_SCHED_CLS, program));
  return attach(loaded, interface_index, tcx_ingress, 0);
}

Result<XdpProgram> bpf_redirect_queue(int interface_index, int xdp_socket) {
  XdpProgram out;
  bpf_attr map{};
  map.map_type = BPF_MAP_TYPE_XSKMAP;
  map.key_size = sizeof(uint32_t);
  map.value_size = sizeof(uint32_t);
  map.max_entries = 1;
  out.sockets = Descriptor(call(BPF_MAP_CREATE, map));
  if (!out.sockets) return kernel_refusal("make a map of AF_XDP sockets");

  const uint32_t queue = 0;
  const auto socket = static_cast<uint32_t>(xdp_socket);
  bpf_attr entry{};
  entry.map_fd = static_cast<uint32_t>(out.sockets.number());
  entry.key = reinterpret_cast<uint64_t>(&queue);
  entry.value = reinterpret_cast<uint64_t>(&socket);
  if (call(BPF_MAP_UPDATE_ELEM, entry) != 0) return kernel_refusal("put an AF_XDP socket into a map");

  // return redirect(sockets, context->rx_queue_index, otherwise XDP_DROP)
  const std::array program{
      bpf_insn{BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, queue_index_at, 0},
      bpf_insn{BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, out.sockets.number()},
      bpf_insn{0, 0, 0, 0, 0},  // the upper half of the 64 bits
      set<BPF_REG_3>(XDP_DROP),
      call_kernel(BPF_FUNC_redirect_map),
      exit_program,
  };
  SPL_ASSIGN(const Descriptor loaded, load(BPF_PROG_TYPE_XDP, program));
  auto link = attach(loaded, interface_index, BPF_XDP, XDP_FLAGS_DRV_MODE);
  if (!link) {
    out.in_driver = false;
    link = attach(loaded, interface_index, BPF_XDP, XDP_FLAGS_SKB_MODE);
  }
  if (!link) return link.error();
  out.link = std::move(*link);
  return out;
}

}  // namespace spinloom::port
