// portals4.h: the values and layouts that programs built against other Portals 4.3 headers rely on.
#include <gtest/gtest.h>

#include <cstddef>

#include "portals4.h"
#include "portals4_spin.h"

namespace {

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset))

static_assert(sizeof(ptl_process_t) == 8 && alignof(ptl_process_t) == 4);
static_assert(sizeof(ptl_md_t) == 32);
AT(ptl_md_t, length, 8);
AT(ptl_md_t, options, 16);
AT(ptl_md_t, eq_handle, 20);
AT(ptl_md_t, ct_handle, 24);
static_assert(sizeof(ptl_iovec_t) == 16);
AT(ptl_iovec_t, iov_len, 8);
static_assert(sizeof(ptl_le_t) == 32);
AT(ptl_le_t, length, 8);
AT(ptl_le_t, ct_handle, 16);
AT(ptl_le_t, uid, 20);
AT(ptl_le_t, options, 24);
static_assert(sizeof(ptl_me_t) == 64);
AT(ptl_me_t, length, 8);
AT(ptl_me_t, ct_handle, 16);
AT(ptl_me_t, uid, 20);
AT(ptl_me_t, options, 24);
AT(ptl_me_t, match_id, 28);
AT(ptl_me_t, match_bits, 40);
AT(ptl_me_t, ignore_bits, 48);
AT(ptl_me_t, min_free, 56);
static_assert(sizeof(ptl_ct_event_t) == 16);
AT(ptl_ct_event_t, failure, 8);
static_assert(sizeof(ptl_event_t) == 80);
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
static_assert(sizeof(ptl_ni_limits_t) == 96);
AT(ptl_ni_limits_t, max_unexpected_headers, 4);
AT(ptl_ni_limits_t, max_pt_index, 20);
AT(ptl_ni_limits_t, max_triggered_ops, 32);
AT(ptl_ni_limits_t, max_msg_size, 40);
AT(ptl_ni_limits_t, max_volatile_size, 80);
AT(ptl_ni_limits_t, features, 88);

static_assert(PTL_LIST_TOO_LONG == 8 && PTL_PT_IN_USE == 14 && PTL_ABORTED == 15 && PTL_STATUS_LAST == 15);
static_assert(PTL_EQ_NONE == 0x3fffffff && PTL_CT_NONE == 0x5fffffff && PTL_INVALID_HANDLE == 0xffffffff);
static_assert(PTL_NID_ANY == 0xffff && PTL_PID_ANY == 0xffff && PTL_RANK_ANY == 0xffffffff);
static_assert(PTL_ME_EVENT_CT_BYTES == 0x4000 && PTL_ME_LOCAL_INC_UH_RLENGTH == 0x40000);
static_assert(PTL_EVENT_SEARCH == 15 && PTL_NI_SEGV == 7 && PTL_OC_ACK_REQ == 3);
static_assert(PTL_MSWAP == 17 && PTL_FLOAT == 6 && PTL_INT64_T == 7 && PTL_LONG_DOUBLE_COMPLEX == 13);

TEST(Header, MasksHoldTheirOptionsAndNothingElse) {
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
