// Our declarations of libfabric's binary interface beside its own headers, where these are.
#include "live/fabric/fabric_interface.hpp"

#include <gtest/gtest.h>

#if __has_include(<rdma/fabric.h>)
#include <rdma/fabric.h>
#endif
#if defined(FI_MAJOR_VERSION) && FI_MAJOR_VERSION == 1
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

namespace {

namespace ours = spinloom::live::fabric;

#define SAME_PLACE(type, field)                                                       \
  EXPECT_TRUE(offsetof(ours::type, field) == offsetof(::type, field) &&               \
              sizeof(decltype(ours::type::field)) == sizeof(decltype(::type::field))) \
      << #type "." #field

TEST(FabricInterface, structures_lie_as_in_the_headers) {
  EXPECT_EQ(sizeof(ours::fi_tx_attr), sizeof(::fi_tx_attr));
  EXPECT_EQ(sizeof(ours::fi_rx_attr), sizeof(::fi_rx_attr));
  EXPECT_EQ(sizeof(ours::fi_ep_attr), sizeof(::fi_ep_attr));
  EXPECT_EQ(sizeof(ours::fi_fabric_attr), sizeof(::fi_fabric_attr));
  EXPECT_EQ(sizeof(ours::fi_info), sizeof(::fi_info));
  EXPECT_EQ(sizeof(ours::fi_av_attr), sizeof(::fi_av_attr));
  EXPECT_EQ(sizeof(ours::fi_cq_attr), sizeof(::fi_cq_attr));
  EXPECT_EQ(sizeof(ours::fi_cq_msg_entry), sizeof(::fi_cq_msg_entry));
  EXPECT_EQ(sizeof(ours::fi_context2), sizeof(::fi_context2));
  SAME_PLACE(fi_tx_attr, msg_order);
  SAME_PLACE(fi_tx_attr, size);
  SAME_PLACE(fi_rx_attr, msg_order);
  SAME_PLACE(fi_rx_attr, size);
  SAME_PLACE(fi_ep_attr, type);
  SAME_PLACE(fi_ep_attr, max_msg_size);
  SAME_PLACE(fi_domain_attr, name);
  SAME_PLACE(fi_domain_attr, threading);
  SAME_PLACE(fi_domain_attr, resource_mgmt);
  SAME_PLACE(fi_domain_attr, av_type);
  SAME_PLACE(fi_domain_attr, mr_mode);
  SAME_PLACE(fi_domain_attr, mr_key_size);
  SAME_PLACE(fi_domain_attr, tclass);
  SAME_PLACE(fi_fabric_attr, prov_name);
  SAME_PLACE(fi_info, next);
  SAME_PLACE(fi_info, caps);
  SAME_PLACE(fi_info, mode);
  SAME_PLACE(fi_info, addr_format);
  SAME_PLACE(fi_info, src_addr);
  SAME_PLACE(fi_info, tx_attr);
  SAME_PLACE(fi_info, rx_attr);
  SAME_PLACE(fi_info, ep_attr);
  SAME_PLACE(fi_info, domain_attr);
  SAME_PLACE(fi_info, fabric_attr);
  SAME_PLACE(fi_av_attr, type);
  SAME_PLACE(fi_cq_attr, size);
  SAME_PLACE(fi_cq_attr, format);
  SAME_PLACE(fi_cq_attr, wait_obj);
  SAME_PLACE(fi_cq_msg_entry, op_context);
  SAME_PLACE(fi_cq_msg_entry, len);
  SAME_PLACE(fi_cq_err_entry, op_context);
  SAME_PLACE(fi_cq_err_entry, err);
  SAME_PLACE(fi_cq_err_entry, err_data_size);
}

TEST(FabricInterface, objects_and_their_functions_lie_as_in_the_headers) {
  SAME_PLACE(fid, ops);
  SAME_PLACE(fid_fabric, ops);
  SAME_PLACE(fid_domain, ops);
  SAME_PLACE(fid_domain, mr);
  SAME_PLACE(fid_av, ops);
  SAME_PLACE(fid_cq, ops);
  SAME_PLACE(fid_ep, cm);
  SAME_PLACE(fid_ep, msg);
  SAME_PLACE(fid_ep, rma);
  SAME_PLACE(fid_mr, mem_desc);
  SAME_PLACE(fid_mr, key);
  SAME_PLACE(fi_ops, close);
  SAME_PLACE(fi_ops, bind);
  SAME_PLACE(fi_ops, control);
  SAME_PLACE(fi_ops_fabric, domain);
  SAME_PLACE(fi_ops_fabric, trywait);
  SAME_PLACE(fi_ops_domain, av_open);
  SAME_PLACE(fi_ops_domain, cq_open);
  SAME_PLACE(fi_ops_domain, endpoint);
  SAME_PLACE(fi_ops_mr, reg);
  SAME_PLACE(fi_ops_av, insert);
  SAME_PLACE(fi_ops_av, straddr);
  SAME_PLACE(fi_ops_cq, read);
  SAME_PLACE(fi_ops_cq, readerr);
  SAME_PLACE(fi_ops_cm, getname);
  SAME_PLACE(fi_ops_msg, recv);
  SAME_PLACE(fi_ops_msg, send);
  SAME_PLACE(fi_ops_rma, read);
}

TEST(FabricInterface, numbers_are_those_of_the_headers) {
  EXPECT_EQ(ours::cap_msg, FI_MSG);
  EXPECT_EQ(ours::cap_rma, FI_RMA);
  EXPECT_EQ(ours::cap_read, FI_READ);
  EXPECT_EQ(ours::cap_recv, FI_RECV);
  EXPECT_EQ(ours::cap_send, FI_SEND);
  EXPECT_EQ(ours::cap_transmit, FI_TRANSMIT);
  EXPECT_EQ(ours::cap_remote_read, FI_REMOTE_READ);
  EXPECT_EQ(ours::mode_context, FI_CONTEXT);
  EXPECT_EQ(ours::mode_context2, FI_CONTEXT2);
  EXPECT_EQ(ours::mr_local, FI_MR_LOCAL);
  EXPECT_EQ(ours::mr_virt_addr, FI_MR_VIRT_ADDR);
  EXPECT_EQ(ours::mr_allocated, FI_MR_ALLOCATED);
  EXPECT_EQ(ours::mr_prov_key, FI_MR_PROV_KEY);
  EXPECT_EQ(ours::mr_endpoint, FI_MR_ENDPOINT);
  EXPECT_EQ(ours::order_sas, FI_ORDER_SAS);
  EXPECT_EQ(ours::ep_rdm, FI_EP_RDM);
  EXPECT_EQ(ours::thread_domain, FI_THREAD_DOMAIN);
  EXPECT_EQ(ours::rm_enabled, FI_RM_ENABLED);
  EXPECT_EQ(ours::cq_format_msg, FI_CQ_FORMAT_MSG);
  EXPECT_EQ(ours::wait_none, FI_WAIT_NONE);
  EXPECT_EQ(ours::wait_fd, FI_WAIT_FD);
  EXPECT_EQ(ours::format_sockaddr_in, uint32_t{FI_SOCKADDR_IN});
  EXPECT_EQ(ours::format_sockaddr_in6, uint32_t{FI_SOCKADDR_IN6});
  EXPECT_EQ(ours::addr_unspec, FI_ADDR_UNSPEC);
  EXPECT_EQ(ours::addr_notavail, FI_ADDR_NOTAVAIL);
  EXPECT_EQ(ours::command_getwait, FI_GETWAIT);
  EXPECT_EQ(ours::command_enable, FI_ENABLE);
  EXPECT_EQ(ours::error_again, FI_EAGAIN);
  EXPECT_EQ(ours::error_nodata, FI_ENODATA);
  EXPECT_EQ(ours::error_avail, FI_EAVAIL);
  EXPECT_EQ(ours::version_of(1, 14), uint32_t{FI_VERSION(1, 14)});
  EXPECT_EQ(ours::major_of(0x10011), uint32_t{FI_MAJOR(0x10011)});
  EXPECT_EQ(ours::minor_of(0x10011), uint32_t{FI_MINOR(0x10011)});
}

}  // namespace
#else
TEST(FabricInterface, lies_as_in_the_headers) {
  GTEST_SKIP() << "libfabric's headers 1.x are not here (Debian: libfabric-dev)";
}
#endif
