/* The address map that a handler sees on its handler processing unit (HPU), and its command window.
 *
 * Contract: shared by handlers (RV32 and native), the HPU floor and every driver. Freestanding C11.
 * A handler issues a command by storing words into the window and then loading ISSUE. A DMA takes six
 * stores and one load, as with PsPIN's command unit. The loaded value is the command's
 * result (a handle or a return code); a blocking command answers late.
 */
#ifndef SPINLOOM_HPU_MAP_H
#define SPINLOOM_HPU_MAP_H

#define SPL_HPU_IMAGE_BASE 0x10000000u   /* text and read-only data: read, execute */
#define SPL_HPU_CONST_BASE 0x20000000u   /* read-only NIC memory of the context (layouts, lists) */
#define SPL_HPU_STATE_BASE 0x30000000u   /* writable NIC memory of the context, shared between HPUs */
#define SPL_HPU_PACKET_BASE 0x40000000u  /* payload of the packet at hand: read-only */
#define SPL_HPU_STACK_BASE 0x50000000u   /* private scratchpad of the HPU: arguments and stack */
#define SPL_HPU_COMMAND_BASE 0x60000000u /* the command window: device memory */

/* A handler returns to this address; executing it ends the handler with a0 as its return code. */
#define SPL_HPU_RETURN_PC 0x00000ffcu

/* Words of the command window (byte offsets from SPL_HPU_COMMAND_BASE). */
#define SPL_CMD_WORD0 0x00u /* .. WORD15 at 0x3c */
#define SPL_CMD_WORDS 16u
#define SPL_CMD_ISSUE 0x40u       /* load: issues the command in the words, returns its result */
#define SPL_CMD_HPU 0x44u         /* load: physical HPU index */
#define SPL_CMD_VHPU 0x48u        /* load: virtual HPU index of this packet */
#define SPL_CMD_HPU_COUNT 0x4cu   /* load: number of physical HPUs */
/* Loads of what the matching engine and the HER generator found for a frame (Ethernet NIC; spinloom/frame.h). */
#define SPL_CMD_FRAME_BYTES 0x50u /* 0: the handler has no frame */
#define SPL_CMD_MESSAGE 0x54u     /* identifier of the frame's message, or what the host gave */
#define SPL_CMD_RULE_SET 0x58u    /* index of the rule set that matched */
#define SPL_CMD_FLAGS 0x5cu       /* SPL_FRAME_... */
#define SPL_CMD_WINDOW_BYTES 0x80u

#define SPL_FRAME_FIRST 1u   /* the first frame of its message */
#define SPL_FRAME_LAST 2u    /* its end-of-message rule held */
#define SPL_FRAME_BY_HOST 4u /* no frame: the host has activated the handler */

/* WORD0 of a command: the call in the low byte, its options above. 64-bit numbers take two words, the low one first. */
#define SPL_CALL_DMA_TO_HOST_NB 1u /* WORD1 local, WORD2-3 offset, WORD4 bytes, WORD5 tag */
#define SPL_CALL_DMA_TO_HOST_B 2u
#define SPL_CALL_DMA_FROM_HOST_NB 3u
#define SPL_CALL_DMA_FROM_HOST_B 4u
#define SPL_CALL_DMA_TEST 5u /* WORD1 handle */
#define SPL_CALL_DMA_WAIT 6u
#define SPL_CALL_CT_INC 7u /* WORD1-2 success, WORD3-4 failure */
#define SPL_CALL_YIELD 8u
#define SPL_CALL_CT_GET 9u /* WORD5 place for two 64-bit counts */
#define SPL_CALL_CT_SET 10u
/* WORD1 place for the old value (8 bytes), WORD2-3 offset, WORD4 width, WORD5-6 compare, WORD7-8 operand */
#define SPL_CALL_DMA_CAS_NB 11u
#define SPL_CALL_DMA_CAS_B 12u
#define SPL_CALL_DMA_FADD_NB 13u
#define SPL_CALL_DMA_FADD_B 14u
/* WORD1 HPU memory (8 bytes), WORD2 place for the old value, WORD5-6 compare, WORD7-8 operand */
#define SPL_CALL_HPU_CAS 15u
#define SPL_CALL_HPU_FADD 16u
/* WORD1 local (device), WORD2-3 offset (host), WORD4 bytes, WORD5 target, WORD6-7 match bits, WORD8-9 remote offset,
 * WORD10-11 header data, WORD12-13 user pointer, WORD14 length high (host) */
#define SPL_CALL_PUT_FROM_DEVICE 17u
#define SPL_CALL_PUT_FROM_HOST 18u
#define SPL_CALL_DEBUG 19u /* WORD1 text that ends with a zero byte, WORD2 a number */
/* Gets have the words of puts, without header data. */
#define SPL_CALL_GET_FROM_DEVICE 20u
#define SPL_CALL_GET_FROM_HOST 21u
/* Atomics have the words of puts. WORD15 operation in the low byte, datatype above; if they fetch, WORD2-3 operand. */
#define SPL_CALL_ATOMIC_FROM_DEVICE 22u
#define SPL_CALL_ATOMIC_FROM_HOST 23u
#define SPL_CALL_FETCH_ATOMIC_FROM_DEVICE 24u
#define SPL_CALL_PROCESS_PUT 25u /* words as for puts from the host; WORD15 context */
/* Calls of an Ethernet NIC. */
#define SPL_CALL_SEND_FRAME 26u /* WORD1 frame, WORD4 bytes; the result is a handle, as of a DMA */
#define SPL_CALL_TELEMETRY 27u /* WORD1 which count; the result is its low word */
#define SPL_CALL_MAIL 28u /* WORD1 context, WORD2-3 argument, WORD4 value */
/* Numbers of counts: from 0 on those of the NIC (docs/ethernet.md), then those of the handler's context, and the number
 * of free packet slots. */
#define SPL_TELEMETRY_CONTEXT 64u
#define SPL_TELEMETRY_FREE_SLOTS 96u

#endif
