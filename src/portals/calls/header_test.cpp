// portals4.h: the values and layouts that programs built against other Portals 4.3 headers rely on.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/limits.hpp"
#include "portals4.h"
#include "portals4_spin.h"

namespace {

template <class Expected, class... Found>
constexpr bool are_all = (std::is_same_v<Expected, Found> && ...);

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset))

// Rules: P4F-1.1, P4F-1.2, P4F-1.3, P4F-1.4, P4F-1.5.
TEST(Header, TypesHaveTheirWidths) {
  EXPECT_TRUE((are_all<uint64_t, ptl_size_t, ptl_match_bits_t, ptl_hdr_data_t>));
  EXPECT_TRUE((are_all<uint32_t, ptl_pt_index_t, ptl_time_t, ptl_interface_t, ptl_nid_t, ptl_pid_t, ptl_rank_t>));
  EXPECT_TRUE((are_all<uint32_t, ptl_uid_t, ptl_handle_any_t, ptl_handle_ni_t, ptl_handle_eq_t, ptl_handle_ct_t>));
  EXPECT_TRUE((are_all<uint32_t, ptl_handle_md_t, ptl_handle_le_t, ptl_handle_me_t>));
  EXPECT_TRUE((are_all<uint8_t, ptl_ni_fail_t, ptl_list_t, ptl_search_op_t, ptl_ack_req_t, ptl_op_t, ptl_datatype_t>));
  EXPECT_TRUE((are_all<uint8_t, ptl_event_kind_t>));
  static_assert(sizeof(ptl_sr_value_t) == 4 && sizeof(ptl_sr_index_t) == 4 && sizeof(ptl_ct_type_t) == 4);
}

// Rules: P4F-1.6.
TEST(Header, ProcessHasItsLayout) {
  static_assert(sizeof(ptl_process_t) == 8 && alignof(ptl_process_t) == 4);
  AT(ptl_process_t, rank, 0);
  AT(ptl_process_t, phys.nid, 0);
  AT(ptl_process_t, phys.pid, 4);
}

// Rules: P4F-1.7.
TEST(Header, DescriptorHasItsLayout) {
  static_assert(sizeof(ptl_md_t) == 32);
  AT(ptl_md_t, start, 0);
  AT(ptl_md_t, length, 8);
  AT(ptl_md_t, options, 16);
  AT(ptl_md_t, eq_handle, 20);
  AT(ptl_md_t, ct_handle, 24);
}

// Rules: P4F-1.8.
TEST(Header, PieceHasItsLayout) {
  static_assert(sizeof(ptl_iovec_t) == 16);
  AT(ptl_iovec_t, iov_base, 0);
  AT(ptl_iovec_t, iov_len, 8);
}

// Rules: P4F-1.9.
TEST(Header, ListEntryHasItsLayout) {
  static_assert(sizeof(ptl_le_t) == 32);
  AT(ptl_le_t, start, 0);
  AT(ptl_le_t, length, 8);
  AT(ptl_le_t, ct_handle, 16);
  AT(ptl_le_t, uid, 20);
  AT(ptl_le_t, options, 24);
}

// Rules: P4F-1.10, P4F-1.11.
TEST(Header, MatchListEntryHasItsLayoutAndBeginsAsAListEntry) {
  static_assert(sizeof(ptl_me_t) == 64);
  AT(ptl_me_t, start, 0);
  AT(ptl_me_t, length, 8);
  AT(ptl_me_t, ct_handle, 16);
  AT(ptl_me_t, uid, 20);
  AT(ptl_me_t, options, 24);
  AT(ptl_me_t, match_id, 28);
  AT(ptl_me_t, match_bits, 40);
  AT(ptl_me_t, ignore_bits, 48);
  AT(ptl_me_t, min_free, 56);
  static_assert(offsetof(ptl_me_t, start) == offsetof(ptl_le_t, start));
  static_assert(offsetof(ptl_me_t, length) == offsetof(ptl_le_t, length));
  static_assert(offsetof(ptl_me_t, ct_handle) == offsetof(ptl_le_t, ct_handle));
  static_assert(offsetof(ptl_me_t, uid) == offsetof(ptl_le_t, uid));
  static_assert(offsetof(ptl_me_t, options) == offsetof(ptl_le_t, options));
}

// Rules: P4F-1.12.
TEST(Header, CounterValueHasItsLayout) {
  static_assert(sizeof(ptl_ct_event_t) == 16);
  AT(ptl_ct_event_t, success, 0);
  AT(ptl_ct_event_t, failure, 8);
}

// Rules: P4F-1.13.
TEST(Header, EventHasItsLayout) {
  static_assert(sizeof(ptl_event_t) == 80);
  AT(ptl_event_t, start, 0);
  AT(ptl_event_t, user_ptr, 8);
  AT(ptl_event_t, hdr_data, 16);
  AT(ptl_event_t, match_bits, 24);
  AT(ptl_event_t, rlength, 32);
  AT(ptl_event_t, mlength, 40);
  AT(ptl_event_t, remote_offset, 48);
  AT(ptl_event_t, initiator, 56);
  AT(ptl_event_t, uid, 64);
  AT(ptl_event_t, pt_index, 68);
  AT(ptl_event_t, type, 72);
  AT(ptl_event_t, ptl_list, 73);
  AT(ptl_event_t, ni_fail_type, 74);
  AT(ptl_event_t, atomic_operation, 75);
  AT(ptl_event_t, atomic_type, 76);
}

// Rules: P4F-1.14.
TEST(Header, LimitsHaveTheirLayout) {
  static_assert(sizeof(ptl_ni_limits_t) == 96);
  AT(ptl_ni_limits_t, max_entries, 0);
  AT(ptl_ni_limits_t, max_unexpected_headers, 4);
  AT(ptl_ni_limits_t, max_mds, 8);
  AT(ptl_ni_limits_t, max_cts, 12);
  AT(ptl_ni_limits_t, max_eqs, 16);
  AT(ptl_ni_limits_t, max_pt_index, 20);
  AT(ptl_ni_limits_t, max_iovecs, 24);
  AT(ptl_ni_limits_t, max_list_size, 28);
  AT(ptl_ni_limits_t, max_triggered_ops, 32);
  AT(ptl_ni_limits_t, max_msg_size, 40);
  AT(ptl_ni_limits_t, max_atomic_size, 48);
  AT(ptl_ni_limits_t, max_fetch_atomic_size, 56);
  AT(ptl_ni_limits_t, max_waw_ordered_size, 64);
  AT(ptl_ni_limits_t, max_war_ordered_size, 72);
  AT(ptl_ni_limits_t, max_volatile_size, 80);
  AT(ptl_ni_limits_t, features, 88);
}

// Rules: P4F-2.1, P4F-2.2.
TEST(Header, ReturnCodesHaveTheirValues) {
  static_assert(PTL_OK == 0);
  static_assert(PTL_ARG_INVALID == 1);
  static_assert(PTL_CT_NONE_REACHED == 2);
  static_assert(PTL_EQ_DROPPED == 3);
  static_assert(PTL_EQ_EMPTY == 4);
  static_assert(PTL_FAIL == 5);
  static_assert(PTL_IGNORED == 6);
  static_assert(PTL_IN_USE == 7);
  static_assert(PTL_LIST_TOO_LONG == 8);
  static_assert(PTL_NO_INIT == 9);
  static_assert(PTL_NO_SPACE == 10);
  static_assert(PTL_PID_IN_USE == 11);
  static_assert(PTL_PT_FULL == 12);
  static_assert(PTL_PT_EQ_NEEDED == 13);
  static_assert(PTL_PT_IN_USE == 14);
  static_assert(PTL_ABORTED == 15);
  static_assert(PTL_STATUS_LAST == 15);
}

// Rules: P4F-2.3, P4F-2.4, P4F-2.5, P4F-2.6, P4F-2.7.
TEST(Header, SpecialNumbersHaveTheirValues) {
  static_assert(PTL_PID_MAX == 1024);
  static_assert(PTL_INVALID_HANDLE == 0xffffffff);
  static_assert(PTL_IFACE_DEFAULT == 0xffffffff);
  static_assert(PTL_UID_ANY == 0xffffffff);
  static_assert(PTL_PT_ANY == 0xffffffff);
  static_assert(PTL_RANK_ANY == 0xffffffff);
  static_assert(PTL_TIME_FOREVER == 0xffffffff);
  static_assert(PTL_EQ_NONE == 0x3fffffff);
  static_assert(PTL_CT_NONE == 0x5fffffff);
  static_assert(PTL_PID_ANY == 0xffff);
  static_assert(PTL_NID_ANY == 0xffff);
  static_assert(PTL_SIZE_MAX == UINT64_MAX);
}

// Rules: P4F-2.8.
TEST(Header, NoNodeOfAJobIsAWildcard) { static_assert(spinloom::limits::rank_count_max < PTL_NID_ANY); }

// Rules: P4F-2.9, P4F-2.10.
TEST(Header, OptionsAndFeaturesOfInterfacesHaveTheirValues) {
  static_assert(PTL_NI_MATCHING == 0x1);
  static_assert(PTL_NI_NO_MATCHING == 0x2);
  static_assert(PTL_NI_LOGICAL == 0x4);
  static_assert(PTL_NI_PHYSICAL == 0x8);
  static_assert(PTL_NI_INIT_OPTIONS_MASK == 0xf);
  static_assert(PTL_TARGET_BIND_INACCESSIBLE == 0x1);
  static_assert(PTL_TOTAL_DATA_ORDERING == 0x2);
  static_assert(PTL_COHERENT_ATOMICS == 0x4);
}

// Rules: P4F-2.11.
TEST(Header, KindsOfFailureHaveTheirValues) {
  static_assert(PTL_NI_OK == 0);
  static_assert(PTL_NI_UNDELIVERABLE == 1);
  static_assert(PTL_NI_DROPPED == 2);
  static_assert(PTL_NI_PT_DISABLED == 3);
  static_assert(PTL_NI_PERM_VIOLATION == 4);
  static_assert(PTL_NI_OP_VIOLATION == 5);
  static_assert(PTL_NI_NO_MATCH == 6);
  static_assert(PTL_NI_SEGV == 7);
}

// Rules: P4F-2.12.
TEST(Header, OptionsOfPortalTableEntriesHaveTheirValues) {
  static_assert(PTL_PT_ONLY_USE_ONCE == 0x1);
  static_assert(PTL_PT_FLOWCTRL == 0x2);
  static_assert(PTL_PT_ONLY_TRUNCATE == 0x4);
  static_assert(PTL_PT_MATCH_UNORDERED == 0x8);
  static_assert(PTL_PT_ALLOC_DISABLED == 0x10);
  static_assert(PTL_PT_ALLOC_OPTIONS_MASK == 0x1f);
}

// Rules: P4F-2.13, P4F-2.14.
TEST(Header, OptionsOfDescriptorsHaveTheirValues) {
  static_assert(PTL_IOVEC == 1);
  static_assert(PTL_MD_EVENT_CT_SEND == 0x2);
  static_assert(PTL_MD_EVENT_CT_REPLY == 0x4);
  static_assert(PTL_MD_EVENT_CT_ACK == 0x8);
  static_assert(PTL_MD_UNORDERED == 0x10);
  static_assert(PTL_MD_EVENT_SUCCESS_DISABLE == 0x20);
  static_assert(PTL_MD_VOLATILE == 0x40);
  static_assert(PTL_MD_EVENT_SEND_DISABLE == 0x80);
  static_assert(PTL_MD_UNRELIABLE == 0x100);
  static_assert(PTL_MD_EVENT_CT_BYTES == 0x4000);
  static_assert(PTL_MD_OPTIONS_MASK == 0x41ff);
}

// Rules: P4F-2.15, P4F-2.17.
TEST(Header, OptionsOfEntriesHaveTheirValues) {
  static_assert(PTL_ME_OP_PUT == 0x2);
  static_assert(PTL_ME_OP_GET == 0x4);
  static_assert(PTL_ME_USE_ONCE == 0x8);
  static_assert(PTL_ME_UNEXPECTED_HDR_DISABLE == 0x10);
  static_assert(PTL_ME_IS_ACCESSIBLE == 0x20);
  static_assert(PTL_ME_EVENT_LINK_DISABLE == 0x40);
  static_assert(PTL_ME_EVENT_COMM_DISABLE == 0x80);
  static_assert(PTL_ME_EVENT_FLOWCTRL_DISABLE == 0x100);
  static_assert(PTL_ME_EVENT_SUCCESS_DISABLE == 0x200);
  static_assert(PTL_ME_EVENT_OVER_DISABLE == 0x400);
  static_assert(PTL_ME_EVENT_UNLINK_DISABLE == 0x800);
  static_assert(PTL_ME_EVENT_CT_COMM == 0x1000);
  static_assert(PTL_ME_EVENT_CT_OVERFLOW == 0x2000);
  static_assert(PTL_ME_EVENT_CT_BYTES == 0x4000);
  static_assert(PTL_ME_MANAGE_LOCAL == 0x8000);
  static_assert(PTL_ME_NO_TRUNCATE == 0x10000);
  static_assert(PTL_ME_MAY_ALIGN == 0x20000);
  static_assert(PTL_ME_LOCAL_INC_UH_RLENGTH == 0x40000);
}

// Rules: P4F-2.16.
TEST(Header, OptionsOfListEntriesAreThoseOfMatchListEntries) {
  static_assert(PTL_LE_OP_PUT == PTL_ME_OP_PUT);
  static_assert(PTL_LE_OP_GET == PTL_ME_OP_GET);
  static_assert(PTL_LE_USE_ONCE == PTL_ME_USE_ONCE);
  static_assert(PTL_LE_UNEXPECTED_HDR_DISABLE == PTL_ME_UNEXPECTED_HDR_DISABLE);
  static_assert(PTL_LE_IS_ACCESSIBLE == PTL_ME_IS_ACCESSIBLE);
  static_assert(PTL_LE_EVENT_LINK_DISABLE == PTL_ME_EVENT_LINK_DISABLE);
  static_assert(PTL_LE_EVENT_COMM_DISABLE == PTL_ME_EVENT_COMM_DISABLE);
  static_assert(PTL_LE_EVENT_FLOWCTRL_DISABLE == PTL_ME_EVENT_FLOWCTRL_DISABLE);
  static_assert(PTL_LE_EVENT_SUCCESS_DISABLE == PTL_ME_EVENT_SUCCESS_DISABLE);
  static_assert(PTL_LE_EVENT_OVER_DISABLE == PTL_ME_EVENT_OVER_DISABLE);
  static_assert(PTL_LE_EVENT_UNLINK_DISABLE == PTL_ME_EVENT_UNLINK_DISABLE);
  static_assert(PTL_LE_EVENT_CT_COMM == PTL_ME_EVENT_CT_COMM);
  static_assert(PTL_LE_EVENT_CT_OVERFLOW == PTL_ME_EVENT_CT_OVERFLOW);
  static_assert(PTL_LE_EVENT_CT_BYTES == PTL_ME_EVENT_CT_BYTES);
}

// Rules: P4F-2.19, P4F-2.20, P4F-2.21.
TEST(Header, ListsSearchesAndRequestsHaveTheirValues) {
  static_assert(PTL_PRIORITY_LIST == 0);
  static_assert(PTL_OVERFLOW_LIST == 1);
  static_assert(PTL_SEARCH_ONLY == 0);
  static_assert(PTL_SEARCH_DELETE == 1);
  static_assert(PTL_NO_ACK_REQ == 0);
  static_assert(PTL_ACK_REQ == 1);
  static_assert(PTL_CT_ACK_REQ == 2);
  static_assert(PTL_OC_ACK_REQ == 3);
}

// Rules: P4F-2.22.
TEST(Header, KindsOfEventsHaveTheirValues) {
  static_assert(PTL_EVENT_GET == 0);
  static_assert(PTL_EVENT_GET_OVERFLOW == 1);
  static_assert(PTL_EVENT_PUT == 2);
  static_assert(PTL_EVENT_PUT_OVERFLOW == 3);
  static_assert(PTL_EVENT_ATOMIC == 4);
  static_assert(PTL_EVENT_ATOMIC_OVERFLOW == 5);
  static_assert(PTL_EVENT_FETCH_ATOMIC == 6);
  static_assert(PTL_EVENT_FETCH_ATOMIC_OVERFLOW == 7);
  static_assert(PTL_EVENT_REPLY == 8);
  static_assert(PTL_EVENT_SEND == 9);
  static_assert(PTL_EVENT_ACK == 10);
  static_assert(PTL_EVENT_PT_DISABLED == 11);
  static_assert(PTL_EVENT_LINK == 12);
  static_assert(PTL_EVENT_AUTO_UNLINK == 13);
  static_assert(PTL_EVENT_AUTO_FREE == 14);
  static_assert(PTL_EVENT_SEARCH == 15);
}

// Rules: P4F-2.23.
TEST(Header, AtomicOperationsHaveTheirValues) {
  static_assert(PTL_MIN == 0);
  static_assert(PTL_MAX == 1);
  static_assert(PTL_SUM == 2);
  static_assert(PTL_PROD == 3);
  static_assert(PTL_LOR == 4);
  static_assert(PTL_LAND == 5);
  static_assert(PTL_BOR == 6);
  static_assert(PTL_BAND == 7);
  static_assert(PTL_LXOR == 8);
  static_assert(PTL_BXOR == 9);
  static_assert(PTL_SWAP == 10);
  static_assert(PTL_CSWAP == 11);
  static_assert(PTL_CSWAP_NE == 12);
  static_assert(PTL_CSWAP_LE == 13);
  static_assert(PTL_CSWAP_LT == 14);
  static_assert(PTL_CSWAP_GE == 15);
  static_assert(PTL_CSWAP_GT == 16);
  static_assert(PTL_MSWAP == 17);
  static_assert(PTL_OP_LAST == 18);
}

// Rules: P4F-2.24.
TEST(Header, DatatypesHaveTheirValues) {
  static_assert(PTL_INT8_T == 0);
  static_assert(PTL_UINT8_T == 1);
  static_assert(PTL_INT16_T == 2);
  static_assert(PTL_UINT16_T == 3);
  static_assert(PTL_INT32_T == 4);
  static_assert(PTL_UINT32_T == 5);
  static_assert(PTL_FLOAT == 6);
  static_assert(PTL_INT64_T == 7);
  static_assert(PTL_UINT64_T == 8);
  static_assert(PTL_DOUBLE == 9);
  static_assert(PTL_FLOAT_COMPLEX == 10);
  static_assert(PTL_DOUBLE_COMPLEX == 11);
  static_assert(PTL_LONG_DOUBLE == 12);
  static_assert(PTL_LONG_DOUBLE_COMPLEX == 13);
  static_assert(PTL_DATATYPE_LAST == 14);
}

// Rules: P4F-2.26.
TEST(Header, StatusRegistersHaveTheirValues) {
  static_assert(PTL_SR_DROP_COUNT == 0);
  static_assert(PTL_SR_PERMISSION_VIOLATIONS == 1);
  static_assert(PTL_SR_OPERATION_VIOLATIONS == 2);
  static_assert(PTL_SR_LAST == 3);
}

// Rules: P4F-2.27.
TEST(Header, KindsOfCountsHaveTheirValues) {
  static_assert(PTL_CT_OPERATION == 0);
  static_assert(PTL_CT_BYTE == 1);
}

// Rules: P4F-24.1, P4F-24.2, P4F-24.4.
TEST(Header, NamesOfPortals42HaveValuesOfTheirOwn) {
  static_assert(PTL_INTERRUPTED > PTL_ABORTED && PTL_NI_TARGET_INVALID > PTL_NI_SEGV);
  static_assert(PTL_ME_ACK_DISABLE == 0x80000 && PTL_LE_ACK_DISABLE == PTL_ME_ACK_DISABLE);
}

// Rules: P4F-2.18, P4F-24.2.
TEST(Header, MasksHoldTheirOptionsAndNothingElse) {
  static_assert(PTL_ME_APPEND_OPTIONS_MASK == (0x7ffff | PTL_ME_ACK_DISABLE));
  static_assert(PTL_LE_APPEND_OPTIONS_MASK == (0x7fff | PTL_LE_ACK_DISABLE));
  unsigned int md = PTL_IOVEC;
  for (const unsigned int bit : {PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_REPLY, PTL_MD_EVENT_CT_ACK, PTL_MD_UNORDERED,
                                 PTL_MD_EVENT_SUCCESS_DISABLE, PTL_MD_VOLATILE, PTL_MD_EVENT_SEND_DISABLE,
                                 PTL_MD_UNRELIABLE, PTL_MD_EVENT_CT_BYTES}) {
    EXPECT_EQ(md & bit, 0u) << bit;
    md |= bit;
  }
  EXPECT_EQ(md, PTL_MD_OPTIONS_MASK);
  unsigned int me = PTL_IOVEC;
  for (const unsigned int bit :
       {PTL_ME_OP_PUT, PTL_ME_OP_GET, PTL_ME_USE_ONCE, PTL_ME_UNEXPECTED_HDR_DISABLE, PTL_ME_IS_ACCESSIBLE,
        PTL_ME_EVENT_LINK_DISABLE, PTL_ME_EVENT_COMM_DISABLE, PTL_ME_EVENT_FLOWCTRL_DISABLE,
        PTL_ME_EVENT_SUCCESS_DISABLE, PTL_ME_EVENT_OVER_DISABLE, PTL_ME_EVENT_UNLINK_DISABLE, PTL_ME_EVENT_CT_COMM,
        PTL_ME_EVENT_CT_OVERFLOW, PTL_ME_EVENT_CT_BYTES, PTL_ME_MANAGE_LOCAL, PTL_ME_NO_TRUNCATE, PTL_ME_MAY_ALIGN,
        PTL_ME_LOCAL_INC_UH_RLENGTH, PTL_ME_ACK_DISABLE}) {
    EXPECT_EQ(me & bit, 0u) << bit;
    me |= bit;
  }
  EXPECT_EQ(me, PTL_ME_APPEND_OPTIONS_MASK);
  EXPECT_EQ(PTL_LE_APPEND_OPTIONS_MASK & ~PTL_ME_APPEND_OPTIONS_MASK, 0u);
}

}  // namespace
