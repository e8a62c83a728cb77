/* Makes the calls of PsPIN's interface; what they answered lies in handler memory, one word a row of the test.
 *
 * Contract: handler memory: 64 words. Byte 14 of the frame chooses the part. */
#include <stdlib.h>

#include "spinloom/pspin_compat.h"

#define SAW(value) (saw[row++] = (uint32_t)(value))

__handler__ void calls_ph(handler_args_t* args) {
  task_t* task = args->task;
  uint8_t* frame = task->pkt_mem;
  uint32_t* saw = task->handler_mem;
  int32_t* scratch = task->scratchpad[args->cluster_id];
  uint32_t row = 0;
  spin_cmd_t command = 0;
  switch (frame[14]) {
    case 0: { /* the task */
      SAW(task->pkt_mem == task->l2_pkt_mem);
      SAW(task->pkt_mem_size);
      SAW(task->flow_id);
      SAW(args->hpu_gid == args->cluster_id * NB_CORES + args->hpu_id);
      SAW(task->handler_mem_size);
      SAW(task->host_mem_size);
      SAW(task->host_mem_high);
      SAW(task->scratchpad_size[0]);
      SAW((uint8_t*)task->scratchpad[1] - (uint8_t*)task->scratchpad[0]);
      SAW((uint8_t*)task->handler_mem - (uint8_t*)task->scratchpad[0]);
      break;
    }
    case 1: { /* atomics; locks */
      uint32_t* word = (uint32_t*)scratch;
      scratch[0] = 5;
      SAW(amo_add(scratch, 3));
      SAW(amo_min(scratch, -2));
      SAW(amo_max(scratch, 7));
      SAW(amo_minu(word, 6));
      SAW(amo_maxu(word, 9));
      SAW(amo_or(word, 0x30));
      SAW(amo_and(word, 0x31));
      SAW(amo_xor(word, 0xff));
      SAW(amo_swap(word, 100));
      SAW(compare_and_swap(word, 99, 1));
      SAW(compare_and_swap(word, 100, 101));
      SAW(load_reserved(word));
      SAW(store_conditional(word, 102));
      SAW(load_reserved(word));
      word[0] = 103;
      SAW(store_conditional(word, 104) != 0);
      SAW(word[0]);
      spin_lock_t* lock = (spin_lock_t*)(scratch + 1);
      spin_lock_init(lock);
      SAW(spin_lock_lock(lock));
      SAW(spin_lock_try_lock(lock));
      spin_lock_unlock(lock);
      SAW(spin_lock_try_lock(lock));
      spin_rw_lock_t* both = (spin_rw_lock_t*)(scratch + 4);
      spin_lock_init(&both->glock);
      both->num_readers = 0;
      spin_rw_lock_r_lock(both);
      spin_rw_lock_r_lock(both);
      SAW(both->glock);
      spin_rw_lock_r_unlock(both);
      SAW(both->glock);
      spin_rw_lock_r_unlock(both);
      SAW(both->glock);
      spin_rw_lock_w_lock(both);
      SAW(both->glock);
      spin_rw_lock_w_unlock(both);
      SAW(both->glock);
      break;
    }
    case 2: { /* copies and commands, and how they are refused */
      const uint64_t host = HOST_ADDR(args);
      uint32_t done = 0;
      bool completed = false;
      uint64_t there = 0;
      SAW(spin_dma(frame + 16, scratch, 16, SPIN_DMA_EXT2LOC, 0, &command));
      spin_dma_test(command, &done);
      SAW(done);
      SAW(spin_dma_wait(command));
      SAW(memcmp(scratch, frame + 16, 16));
      SAW(spin_dma(frame, scratch, 0, 0, 0, &command));
      SAW(spin_write_to_host(host + 8, 0x1122334455667788, &command));
      SAW(spin_cmd_wait(command));
      SAW(spin_host_write(host + 16, 7, NULL));
      SAW(spin_dma_from_host(host + 8, (uint32_t)(scratch + 8), 16, 1, &command));
      spin_cmd_test(command, &completed);
      SAW(completed);
      memcpy(&there, scratch + 8, 8);
      SAW(there >> 32);
      SAW(scratch[10]);
      SAW(spin_dma_to_host(host + (1 << 17) - 4, frame, 8, 0, &command)); /* the end lies beyond host memory */
      SAW(spin_cmd_wait(command));
      SAW(spin_write_to_host(0xdeadbeef, 1, &command)); /* no address of host memory */
      SAW(spin_send_packet(frame, 13, &command)); /* less than an Ethernet header */
      uint64_t mine = 0x99aabbcc, back = 0;
      SAW(spin_dma_to_host(host + 32, (uint32_t)&mine, 8, 0, &command)); /* the stack is written out, and read back */
      SAW(spin_cmd_wait(command));
      SAW(spin_dma_from_host(host + 32, &back, 8, 0, &command));
      SAW(back);
      SAW(spin_rdma_put(0, frame, 64, &command));
      SAW(spin_send_packet((uint8_t*)scratch - (uintptr_t)scratch % 64, 64, &command)); /* a frame in the state */
      SAW(spin_cmd_wait(command));
      break;
    }
    case 3: /* lines of text */
      printf("%d %i|%5d|%-5d|%05d|%+d|% d\n", -1, 2, 3, 4, -5, 6, 7);
      printf("%u %x %X %#x %o %#o %08x\n", 4000000000u, 0xabcu, 0xABCu, 255u, 8u, 8u, 0xbeefu);
      printf("%c%s|%8s|%-4s|%.2s|%%|%*d\n", 'a', "bc", "right", "l", "cut", 4, 9);
      printf("%lld %llu %llx %hhd %hu %zu\n", -5000000000ll, 18446744073709551615ull, 0x123456789abull, 300, 65537,
             (size_t)12);
      printf("no end");
      putchar(',');
      puts(" and now");
      printf("%q %d\n", 5);
      for (int i = 0; i < 80; ++i) printf("%d", i % 10);
      printf("\n");
      SPIN_PRINTF("%d\n", 1);
      break;
    case 4: { /* time */
      const uint32_t begin = cycles();
      rt_time_wait_cycles(500);
      SAW(cycles() - begin >= 500);
      break;
    }
    case 5:
      assert(frame[15] == 1);
      SAW(1);
      break;
    case 6: { /* payloads; the task is ordinary memory */
      uint8_t* payload;
      uint32_t bytes;
      frame[20] = 0x45;
      frame[22] = 0, frame[23] = 60;
      GET_IP_UDP_PLD(frame + 20, payload, bytes);
      SAW(payload - frame);
      SAW(bytes);
      uint8_t* const before = task->scratchpad[0];
      amo_add((int32_t*)task->scratchpad, 5);
      SAW((uint8_t*)task->scratchpad[0] - before);
      break;
    }
    default: break;
  }
}
