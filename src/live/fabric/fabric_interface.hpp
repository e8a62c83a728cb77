// FabricInterface - as much of libfabric's binary interface as a port over it uses, so that neither its headers nor the
// library are needed where Spinloom is built.
//
// Contract: structures have the layout of libfabric's interface 1.3 on 64-bit Linux, which every library since 1.9 has
//   under the version FABRIC_1.3; a table ends after the last function that is called here, and functions before it
//   that are not called are Unused. Names of structures, fields and calls are libfabric's; constants have its names,
//   too, in lower case, after a prefix for their group. Where the headers are, fabric_interface_test.cpp compares every
//   layout and number with them. Source: fi_getinfo(3), fi_endpoint(3), fi_cq(3), ...
// Invariants: (1) the calls are the objects' own functions, no more.
// Threads: as libfabric's. Time: theirs.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace spinloom::live::fabric {

// ---- numbers ----

inline constexpr uint64_t cap_msg = 1ULL << 1, cap_rma = 1ULL << 2, cap_read = 1ULL << 8, cap_recv = 1ULL << 10,
                          cap_send = 1ULL << 11, cap_remote_read = 1ULL << 12;
inline constexpr uint64_t cap_transmit = cap_send;
inline constexpr uint64_t mode_context = 1ULL << 59, mode_context2 = 1ULL << 52;
inline constexpr int mr_local = 1 << 2, mr_virt_addr = 1 << 4, mr_allocated = 1 << 5, mr_prov_key = 1 << 6,
                     mr_endpoint = 1 << 9;
inline constexpr uint64_t order_sas = 1ULL << 8;
inline constexpr int ep_rdm = 3, thread_domain = 3, rm_enabled = 2, cq_format_msg = 2, wait_none = 0, wait_fd = 3;
inline constexpr uint32_t format_sockaddr_in = 2, format_sockaddr_in6 = 3;
inline constexpr uint64_t addr_unspec = ~uint64_t{0}, addr_notavail = ~uint64_t{0};
inline constexpr int command_getwait = 5, command_enable = 6;
inline constexpr int error_again = EAGAIN, error_nodata = ENODATA, error_avail = 259;

constexpr uint32_t version_of(uint32_t major, uint32_t minor) { return major << 16 | minor; }
constexpr uint32_t major_of(uint32_t version) { return version >> 16; }
constexpr uint32_t minor_of(uint32_t version) { return version & 0xffff; }

using fi_addr_t = uint64_t;
using Unused = void (*)();

// ---- descriptions of what a provider offers ----

struct fi_tx_attr {
  uint64_t caps, mode, op_flags, msg_order, comp_order;
  size_t inject_size, size, iov_limit, rma_iov_limit;
  uint32_t tclass;
};

struct fi_rx_attr {
  uint64_t caps, mode, op_flags, msg_order, comp_order;
  size_t total_buffered_recv, size, iov_limit;
};

struct fi_ep_attr {
  int type;
  uint32_t protocol, protocol_version;
  size_t max_msg_size, msg_prefix_size, max_order_raw_size, max_order_war_size, max_order_waw_size;
  uint64_t mem_tag_format;
  size_t tx_ctx_cnt, rx_ctx_cnt, auth_key_size;
  uint8_t* auth_key;
};

struct fi_domain_attr {
  void* domain;
  char* name;
  int threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode;
  size_t mr_key_size, cq_data_size, cq_cnt, ep_cnt, tx_ctx_cnt, rx_ctx_cnt, max_ep_tx_ctx, max_ep_rx_ctx,
      max_ep_stx_ctx, max_ep_srx_ctx, cntr_cnt, mr_iov_limit;
  uint64_t caps, mode;
  uint8_t* auth_key;
  size_t auth_key_size, max_err_data, mr_cnt;
  uint32_t tclass;
};

struct fi_fabric_attr {
  void* fabric;
  char* name;
  char* prov_name;
  uint32_t prov_version, api_version;
};

struct fi_info {
  fi_info* next;
  uint64_t caps, mode;
  uint32_t addr_format;
  size_t src_addrlen, dest_addrlen;
  void* src_addr;
  void* dest_addr;
  void* handle;
  fi_tx_attr* tx_attr;
  fi_rx_attr* rx_attr;
  fi_ep_attr* ep_attr;
  fi_domain_attr* domain_attr;
  fi_fabric_attr* fabric_attr;
  void* nic;
};

// ---- attributes of objects to be opened ----

struct fi_av_attr {
  int type, rx_ctx_bits;
  size_t count, ep_per_node;
  const char* name;
  void* map_addr;
  uint64_t flags;
};

struct fi_cq_attr {
  size_t size;
  uint64_t flags;
  int format, wait_obj, signaling_vector, wait_cond;
  void* wait_set;
};

struct fi_cq_msg_entry {
  void* op_context;
  uint64_t flags;
  size_t len;
};

struct fi_cq_err_entry {
  void* op_context;
  uint64_t flags;
  size_t len;
  void* buf;
  uint64_t data, tag;
  size_t olen;
  int err, prov_errno;
  void* err_data;
  size_t err_data_size;
};

struct fi_context2 {
  void* internal[8];
};

// ---- objects, and the tables of their functions ----

struct fid;
struct fid_fabric;
struct fid_domain;
struct fid_av;
struct fid_cq;
struct fid_ep;
struct fid_mr;

struct fi_ops {
  size_t size;
  int (*close)(fid* object);
  int (*bind)(fid* object, fid* other, uint64_t flags);
  int (*control)(fid* object, int command, void* argument);
};
struct fid {
  size_t fclass;
  void* context;
  fi_ops* ops;
};

struct fi_ops_fabric {
  size_t size;
  int (*domain)(fid_fabric* fabric, fi_info* info, fid_domain** made, void* context);
  Unused passive_ep, eq_open, wait_open;
  int (*trywait)(fid_fabric* fabric, fid** objects, int count);
};
struct fid_fabric {
  struct fid fid;
  fi_ops_fabric* ops;
};

struct fi_ops_domain {
  size_t size;
  int (*av_open)(fid_domain* domain, fi_av_attr* wanted, fid_av** made, void* context);
  int (*cq_open)(fid_domain* domain, fi_cq_attr* wanted, fid_cq** made, void* context);
  int (*endpoint)(fid_domain* domain, fi_info* info, fid_ep** made, void* context);
};
struct fi_ops_mr {
  size_t size;
  int (*reg)(fid* domain, const void* bytes, size_t length, uint64_t access, uint64_t offset, uint64_t key,
             uint64_t flags, fid_mr** made, void* context);
};
struct fid_domain {
  struct fid fid;
  fi_ops_domain* ops;
  fi_ops_mr* mr;
};

struct fi_ops_av {
  size_t size;
  int (*insert)(fid_av* peers, const void* addresses, size_t count, fi_addr_t* made, uint64_t flags, void* context);
  Unused insertsvc, insertsym, remove, lookup;
  const char* (*straddr)(fid_av* peers, const void* address, char* text, size_t* length);
};
struct fid_av {
  struct fid fid;
  fi_ops_av* ops;
};

struct fi_ops_cq {
  size_t size;
  ssize_t (*read)(fid_cq* completions, void* entries, size_t count);
  Unused readfrom;
  ssize_t (*readerr)(fid_cq* completions, fi_cq_err_entry* entry, uint64_t flags);
};
struct fid_cq {
  struct fid fid;
  fi_ops_cq* ops;
};

struct fi_ops_cm {
  size_t size;
  Unused setname;
  int (*getname)(fid* endpoint, void* address, size_t* length);
};
struct fi_ops_msg {
  size_t size;
  ssize_t (*recv)(fid_ep* endpoint, void* bytes, size_t length, void* descriptor, fi_addr_t from, void* context);
  Unused recvv, recvmsg;
  ssize_t (*send)(fid_ep* endpoint, const void* bytes, size_t length, void* descriptor, fi_addr_t to, void* context);
};
struct fi_ops_rma {
  size_t size;
  ssize_t (*read)(fid_ep* endpoint, void* bytes, size_t length, void* descriptor, fi_addr_t from, uint64_t address,
                  uint64_t key, void* context);
};
struct fid_ep {
  struct fid fid;
  void* ops;
  fi_ops_cm* cm;
  fi_ops_msg* msg;
  fi_ops_rma* rma;
};

struct fid_mr {
  struct fid fid;
  void* mem_desc;
  uint64_t key;
};

}  // namespace spinloom::live::fabric
