/* portals4.h - the Portals 4 network programming interface, for programs that run on Spinloom's NICs.
 *
 * Contract: names, values and layouts are those of Portals 4.3, so that programs written for it compile and run
 * unchanged. docs/portals.md says how to run one, and where this NIC is narrower.
 * Names that 4.3 dropped and users still write are here with values of their own: PTL_INTERRUPTED, PTL_ME_ACK_DISABLE,
 * PTL_LE_ACK_DISABLE, PTL_NI_TARGET_INVALID.
 * Invariants: (1) sizes and offsets are those of the x86-64 ABI; (2) a handle that was never given out, or whose object
 * is gone, is answered with PTL_ARG_INVALID.
 * Threads: a simulated rank has one thread; in live programs any thread may call. Time: while a call waits, the time of
 * the NIC goes on; in the simulator it is virtual.
 */
#ifndef PORTALS4_H
#define PORTALS4_H

#include <stdint.h>

#include "spinloom/process.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return codes of all calls. */
enum ptl_retvals {
  PTL_OK = 0,
  PTL_ARG_INVALID = 1,
  PTL_CT_NONE_REACHED = 2,
  PTL_EQ_DROPPED = 3,
  PTL_EQ_EMPTY = 4,
  PTL_FAIL = 5,
  PTL_IGNORED = 6,
  PTL_IN_USE = 7,
  PTL_LIST_TOO_LONG = 8,
  PTL_NO_INIT = 9,
  PTL_NO_SPACE = 10,
  PTL_PID_IN_USE = 11,
  PTL_PT_FULL = 12,
  PTL_PT_EQ_NEEDED = 13,
  PTL_PT_IN_USE = 14,
  PTL_ABORTED = 15,
  PTL_INTERRUPTED = 16 /* Portals 4.2: an object that the call waited for has been freed */
};
#define PTL_STATUS_LAST (PTL_PT_IN_USE + 1)

/* Base types. */
typedef uint64_t ptl_size_t;
typedef uint32_t ptl_pt_index_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef unsigned int ptl_time_t; /* milliseconds */
typedef unsigned int ptl_interface_t;
typedef uint32_t ptl_uid_t;

typedef uint32_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_ct_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_le_t;
typedef ptl_handle_any_t ptl_handle_me_t;

typedef unsigned char ptl_ni_fail_t;
typedef unsigned char ptl_list_t;
typedef unsigned char ptl_search_op_t;
typedef unsigned char ptl_ack_req_t;
typedef unsigned char ptl_op_t;
typedef unsigned char ptl_datatype_t;
typedef unsigned char ptl_event_kind_t;

typedef enum {
  PTL_SR_DROP_COUNT = 0,
  PTL_SR_PERMISSION_VIOLATIONS = 1,
  PTL_SR_OPERATION_VIOLATIONS = 2
} ptl_sr_index_t;
#define PTL_SR_LAST (PTL_SR_OPERATION_VIOLATIONS + 1)
typedef int ptl_sr_value_t;

typedef enum {
  PTL_CT_OPERATION = 0,
  PTL_CT_BYTE = 1
} ptl_ct_type_t;

/* Wildcards, and handles that name nothing. */
#define PTL_EQ_NONE ((ptl_handle_eq_t)0x3fffffff)
#define PTL_CT_NONE ((ptl_handle_ct_t)0x5fffffff)
#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffff)
#define PTL_IFACE_DEFAULT ((ptl_interface_t)0xffffffff)
#define PTL_PID_ANY ((ptl_pid_t)0xffff)
#define PTL_PID_MAX 1024
#define PTL_NID_ANY ((ptl_nid_t)0xffff)
#define PTL_UID_ANY ((ptl_uid_t)0xffffffff)
#define PTL_PT_ANY ((ptl_pt_index_t)0xffffffff)
#define PTL_RANK_ANY ((ptl_rank_t)0xffffffff)
#define PTL_TIME_FOREVER ((ptl_time_t)0xffffffff)
#define PTL_SIZE_MAX ((ptl_size_t)0xffffffffffffffffULL)

/* Options of network interfaces: one of the first two and one of the last two. */
#define PTL_NI_MATCHING 0x1u
#define PTL_NI_NO_MATCHING 0x2u
#define PTL_NI_LOGICAL 0x4u
#define PTL_NI_PHYSICAL 0x8u
#define PTL_NI_INIT_OPTIONS_MASK 0xfu

/* Features of a network interface (ptl_ni_limits_t.features). */
#define PTL_TARGET_BIND_INACCESSIBLE 0x1u
#define PTL_TOTAL_DATA_ORDERING 0x2u
#define PTL_COHERENT_ATOMICS 0x4u

/* Reasons for a failed operation (ptl_event_t.ni_fail_type). */
#define PTL_NI_OK ((ptl_ni_fail_t)0)
#define PTL_NI_UNDELIVERABLE ((ptl_ni_fail_t)1)
#define PTL_NI_DROPPED ((ptl_ni_fail_t)2)
#define PTL_NI_PT_DISABLED ((ptl_ni_fail_t)3)
#define PTL_NI_PERM_VIOLATION ((ptl_ni_fail_t)4)
#define PTL_NI_OP_VIOLATION ((ptl_ni_fail_t)5)
#define PTL_NI_NO_MATCH ((ptl_ni_fail_t)6)
#define PTL_NI_SEGV ((ptl_ni_fail_t)7)
#define PTL_NI_TARGET_INVALID ((ptl_ni_fail_t)8) /* Portals 4.2; no event has it */

/* Options of portal table entries. */
#define PTL_PT_ONLY_USE_ONCE 0x1u
#define PTL_PT_FLOWCTRL 0x2u
#define PTL_PT_ONLY_TRUNCATE 0x4u
#define PTL_PT_MATCH_UNORDERED 0x8u
#define PTL_PT_ALLOC_DISABLED 0x10u
#define PTL_PT_ALLOC_OPTIONS_MASK 0x1fu

/* The memory is a list of ptl_iovec_t, and length counts its elements. */
#define PTL_IOVEC 0x1u

/* Options of memory descriptors. */
#define PTL_MD_EVENT_CT_SEND 0x2u
#define PTL_MD_EVENT_CT_REPLY 0x4u
#define PTL_MD_EVENT_CT_ACK 0x8u
#define PTL_MD_UNORDERED 0x10u
#define PTL_MD_EVENT_SUCCESS_DISABLE 0x20u
#define PTL_MD_VOLATILE 0x40u
#define PTL_MD_EVENT_SEND_DISABLE 0x80u
#define PTL_MD_UNRELIABLE 0x100u
#define PTL_MD_EVENT_CT_BYTES 0x4000u
#define PTL_MD_OPTIONS_MASK 0x41ffu

/* Options of matching list entries. */
#define PTL_ME_OP_PUT 0x2u
#define PTL_ME_OP_GET 0x4u
#define PTL_ME_USE_ONCE 0x8u
#define PTL_ME_UNEXPECTED_HDR_DISABLE 0x10u
#define PTL_ME_IS_ACCESSIBLE 0x20u
#define PTL_ME_EVENT_LINK_DISABLE 0x40u
#define PTL_ME_EVENT_COMM_DISABLE 0x80u
#define PTL_ME_EVENT_FLOWCTRL_DISABLE 0x100u
#define PTL_ME_EVENT_SUCCESS_DISABLE 0x200u
#define PTL_ME_EVENT_OVER_DISABLE 0x400u
#define PTL_ME_EVENT_UNLINK_DISABLE 0x800u
#define PTL_ME_EVENT_CT_COMM 0x1000u
#define PTL_ME_EVENT_CT_OVERFLOW 0x2000u
#define PTL_ME_EVENT_CT_BYTES 0x4000u
#define PTL_ME_MANAGE_LOCAL 0x8000u
#define PTL_ME_NO_TRUNCATE 0x10000u
#define PTL_ME_MAY_ALIGN 0x20000u
#define PTL_ME_LOCAL_INC_UH_RLENGTH 0x40000u
#define PTL_ME_ACK_DISABLE 0x80000u /* Portals 4.2: operations on this entry are not acknowledged */
#define PTL_ME_APPEND_OPTIONS_MASK 0xfffffu

/* Options of list entries: those of matching list entries that do not need matching. */
#define PTL_LE_OP_PUT PTL_ME_OP_PUT
#define PTL_LE_OP_GET PTL_ME_OP_GET
#define PTL_LE_USE_ONCE PTL_ME_USE_ONCE
#define PTL_LE_UNEXPECTED_HDR_DISABLE PTL_ME_UNEXPECTED_HDR_DISABLE
#define PTL_LE_IS_ACCESSIBLE PTL_ME_IS_ACCESSIBLE
#define PTL_LE_EVENT_LINK_DISABLE PTL_ME_EVENT_LINK_DISABLE
#define PTL_LE_EVENT_COMM_DISABLE PTL_ME_EVENT_COMM_DISABLE
#define PTL_LE_EVENT_FLOWCTRL_DISABLE PTL_ME_EVENT_FLOWCTRL_DISABLE
#define PTL_LE_EVENT_SUCCESS_DISABLE PTL_ME_EVENT_SUCCESS_DISABLE
#define PTL_LE_EVENT_OVER_DISABLE PTL_ME_EVENT_OVER_DISABLE
#define PTL_LE_EVENT_UNLINK_DISABLE PTL_ME_EVENT_UNLINK_DISABLE
#define PTL_LE_EVENT_CT_COMM PTL_ME_EVENT_CT_COMM
#define PTL_LE_EVENT_CT_OVERFLOW PTL_ME_EVENT_CT_OVERFLOW
#define PTL_LE_EVENT_CT_BYTES PTL_ME_EVENT_CT_BYTES
#define PTL_LE_ACK_DISABLE PTL_ME_ACK_DISABLE
#define PTL_LE_APPEND_OPTIONS_MASK (0x7fffu | PTL_LE_ACK_DISABLE)

#define PTL_PRIORITY_LIST ((ptl_list_t)0)
#define PTL_OVERFLOW_LIST ((ptl_list_t)1)

#define PTL_SEARCH_ONLY ((ptl_search_op_t)0)
#define PTL_SEARCH_DELETE ((ptl_search_op_t)1)

#define PTL_NO_ACK_REQ ((ptl_ack_req_t)0)
#define PTL_ACK_REQ ((ptl_ack_req_t)1)
#define PTL_CT_ACK_REQ ((ptl_ack_req_t)2)
#define PTL_OC_ACK_REQ ((ptl_ack_req_t)3)

/* Kinds of events. */
#define PTL_EVENT_GET ((ptl_event_kind_t)0)
#define PTL_EVENT_GET_OVERFLOW ((ptl_event_kind_t)1)
#define PTL_EVENT_PUT ((ptl_event_kind_t)2)
#define PTL_EVENT_PUT_OVERFLOW ((ptl_event_kind_t)3)
#define PTL_EVENT_ATOMIC ((ptl_event_kind_t)4)
#define PTL_EVENT_ATOMIC_OVERFLOW ((ptl_event_kind_t)5)
#define PTL_EVENT_FETCH_ATOMIC ((ptl_event_kind_t)6)
#define PTL_EVENT_FETCH_ATOMIC_OVERFLOW ((ptl_event_kind_t)7)
#define PTL_EVENT_REPLY ((ptl_event_kind_t)8)
#define PTL_EVENT_SEND ((ptl_event_kind_t)9)
#define PTL_EVENT_ACK ((ptl_event_kind_t)10)
#define PTL_EVENT_PT_DISABLED ((ptl_event_kind_t)11)
#define PTL_EVENT_LINK ((ptl_event_kind_t)12)
#define PTL_EVENT_AUTO_UNLINK ((ptl_event_kind_t)13)
#define PTL_EVENT_AUTO_FREE ((ptl_event_kind_t)14)
#define PTL_EVENT_SEARCH ((ptl_event_kind_t)15)

/* Atomic operations. */
#define PTL_MIN ((ptl_op_t)0)
#define PTL_MAX ((ptl_op_t)1)
#define PTL_SUM ((ptl_op_t)2)
#define PTL_PROD ((ptl_op_t)3)
#define PTL_LOR ((ptl_op_t)4)
#define PTL_LAND ((ptl_op_t)5)
#define PTL_BOR ((ptl_op_t)6)
#define PTL_BAND ((ptl_op_t)7)
#define PTL_LXOR ((ptl_op_t)8)
#define PTL_BXOR ((ptl_op_t)9)
#define PTL_SWAP ((ptl_op_t)10)
#define PTL_CSWAP ((ptl_op_t)11)
#define PTL_CSWAP_NE ((ptl_op_t)12)
#define PTL_CSWAP_LE ((ptl_op_t)13)
#define PTL_CSWAP_LT ((ptl_op_t)14)
#define PTL_CSWAP_GE ((ptl_op_t)15)
#define PTL_CSWAP_GT ((ptl_op_t)16)
#define PTL_MSWAP ((ptl_op_t)17)
#define PTL_OP_LAST ((ptl_op_t)18)

#define PTL_INT8_T ((ptl_datatype_t)0)
#define PTL_UINT8_T ((ptl_datatype_t)1)
#define PTL_INT16_T ((ptl_datatype_t)2)
#define PTL_UINT16_T ((ptl_datatype_t)3)
#define PTL_INT32_T ((ptl_datatype_t)4)
#define PTL_UINT32_T ((ptl_datatype_t)5)
#define PTL_FLOAT ((ptl_datatype_t)6)
#define PTL_INT64_T ((ptl_datatype_t)7)
#define PTL_UINT64_T ((ptl_datatype_t)8)
#define PTL_DOUBLE ((ptl_datatype_t)9)
#define PTL_FLOAT_COMPLEX ((ptl_datatype_t)10)
#define PTL_DOUBLE_COMPLEX ((ptl_datatype_t)11)
#define PTL_LONG_DOUBLE ((ptl_datatype_t)12)
#define PTL_LONG_DOUBLE_COMPLEX ((ptl_datatype_t)13)
#define PTL_DATATYPE_LAST ((ptl_datatype_t)14)

typedef struct {
  int max_entries;
  int max_unexpected_headers;
  int max_mds;
  int max_cts;
  int max_eqs;
  int max_pt_index; /* the largest index */
  int max_iovecs;
  int max_list_size;
  int max_triggered_ops;
  ptl_size_t max_msg_size;
  ptl_size_t max_atomic_size;
  ptl_size_t max_fetch_atomic_size;
  ptl_size_t max_waw_ordered_size;
  ptl_size_t max_war_ordered_size;
  ptl_size_t max_volatile_size;
  unsigned int features;
} ptl_ni_limits_t;

typedef struct {
  void *iov_base;
  ptl_size_t iov_len;
} ptl_iovec_t;

typedef struct {
  void *start;
  ptl_size_t length;
  unsigned int options;
  ptl_handle_eq_t eq_handle;
  ptl_handle_ct_t ct_handle;
} ptl_md_t;

typedef struct {
  void *start;
  ptl_size_t length;
  ptl_handle_ct_t ct_handle;
  ptl_uid_t uid;
  unsigned int options;
} ptl_le_t;

typedef struct {
  void *start;
  ptl_size_t length;
  ptl_handle_ct_t ct_handle;
  ptl_uid_t uid;
  unsigned int options;
  ptl_process_t match_id;
  ptl_match_bits_t match_bits;
  ptl_match_bits_t ignore_bits;
  ptl_size_t min_free;
} ptl_me_t;

typedef struct {
  ptl_size_t success;
  ptl_size_t failure;
} ptl_ct_event_t;

typedef struct {
  void *start;
  void *user_ptr;
  ptl_hdr_data_t hdr_data;
  ptl_match_bits_t match_bits;
  ptl_size_t rlength; /* the length asked for */
  ptl_size_t mlength; /* the length moved */
  ptl_size_t remote_offset;
  ptl_process_t initiator;
  ptl_uid_t uid;
  ptl_pt_index_t pt_index;
  ptl_event_kind_t type;
  ptl_list_t ptl_list;
  ptl_ni_fail_t ni_fail_type;
  ptl_op_t atomic_operation;
  ptl_datatype_t atomic_type;
} ptl_event_t;

/* The library. */
int PtlInit(void);
void PtlFini(void);
void PtlAbort(void);

/* Network interfaces: matching or not, logical or physical; each has a portal table of its own. */
int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t *desired,
              ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);
int PtlNIFini(ptl_handle_ni_t ni_handle);
int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);
int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

/* Identity and the map of ranks. */
int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);
int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);
int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);
int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping);
int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping, ptl_size_t *actual_map_size);

/* Portal table entries. */
int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle, ptl_pt_index_t pt_index_req,
               ptl_pt_index_t *pt_index);
int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* Memory: descriptors for bytes that leave, entries for bytes that arrive. */
int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);
int PtlMDRelease(ptl_handle_md_t md_handle);
int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_list_t ptl_list,
                void *user_ptr, ptl_handle_le_t *le_handle);
int PtlLEUnlink(ptl_handle_le_t le_handle);
int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_search_op_t ptl_search_op,
                void *user_ptr);
int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_list_t ptl_list,
                void *user_ptr, ptl_handle_me_t *me_handle);
int PtlMEUnlink(ptl_handle_me_t me_handle);
int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_search_op_t ptl_search_op,
                void *user_ptr);

/* Counters. */
int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);
int PtlCTFree(ptl_handle_ct_t ct_handle);
int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);
int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);
int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);
int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size, ptl_time_t timeout,
              ptl_ct_event_t *event, unsigned int *which);
int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);
int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* Event queues. */
int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);
int PtlEQFree(ptl_handle_eq_t eq_handle);
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t *event,
              unsigned int *which);

/* Data movement. */
int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           void *user_ptr, ptl_hdr_data_t hdr_data);
int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
           ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr);
int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
              ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
              void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);
int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype);
int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
            const void *operand, ptl_op_t operation, ptl_datatype_t datatype);
int PtlAtomicSync(void);

/* Triggered operations: they start once a counter's successes and failures have reached a threshold. */
int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold);
int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
                    ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                    ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                       ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                       ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                            void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                     ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                     ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                     const void *operand, ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold);
int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold);
int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold);
int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_list_t ptl_list,
                         void *user_ptr, ptl_handle_me_t *me_handle, ptl_handle_ct_t trig_ct_handle,
                         ptl_size_t threshold);
int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/* Hints that the operations between the two calls belong together. */
int PtlStartBundle(ptl_handle_ni_t ni_handle);
int PtlEndBundle(ptl_handle_ni_t ni_handle);

#ifdef __cplusplus
}
#endif

#endif
