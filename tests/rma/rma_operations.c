/* Each operation, of each rank on its right neighbour's memory, compared byte for byte with what it should do; what
 * keys do not grant, what is out of range, keys that are revoked; long operations above the limits of atomics. */
#include "rma_common.h"

enum { WORDS = 40000, BYTES = WORDS * 8 };

static uint64_t* window_words;
static spl_rma_window* window;
static spl_rma_key* right; /* the key of the right neighbour's memory */
static unsigned to;

static uint64_t mark(unsigned rank, unsigned place) { return rank * 1000003ull + place * 7919ull + 1; }

static void fill_own(void) {
  for (unsigned i = 0; i < WORDS; ++i) window_words[i] = mark(my_rank, i);
}

/* The first word that is not as expected, or -1. */
static long long first_wrong(const uint64_t* words, unsigned count, unsigned rank, unsigned from, uint64_t more) {
  for (unsigned i = 0; i < count; ++i) {
    if (words[i] != mark(rank, from + i) + more) return i;
  }
  return -1;
}

static void fence_and_fill(void) {
  RMA(spl_rma_fence(rma));
  fill_own();
  RMA(spl_rma_barrier(rma));
}

static void puts_and_gets(void) {
  const unsigned from = (my_rank + ranks - 1) % ranks;
  uint64_t* const mine = malloc(BYTES);
  static const unsigned counts[] = {1, 3, 128, 1023, 5000, WORDS};
  for (unsigned c = 0; c < sizeof counts / sizeof *counts; ++c) {
    const unsigned count = counts[c], at = (WORDS - count) / 2;
    fence_and_fill();
    memset(mine, 0x55, BYTES);
    RMA(spl_rma_get(right, at * 8, mine, count * 8));
    RMA(spl_rma_flush(rma, to));
    EXPECT(-1, first_wrong(mine, count, to, at, 0));
    RMA(spl_rma_barrier(rma));
    for (unsigned i = 0; i < count; ++i) mine[i] = mark(my_rank + 50, at + i);
    RMA(spl_rma_put(right, at * 8, mine, count * 8));
    RMA(spl_rma_fence(rma));
    EXPECT(-1, first_wrong(window_words + at, count, from + 50, at, 0));
    EXPECT(-1, first_wrong(window_words, at, my_rank, 0, 0));
    EXPECT(-1, first_wrong(window_words + at + count, WORDS - at - count, my_rank, at + count, 0));
  }
  /* In pieces at the origin. */
  fence_and_fill();
  const ptl_iovec_t pieces[3] = {{mine, 24}, {mine + 100, 8}, {mine + 50, 40}};
  for (unsigned i = 0; i < 200; ++i) mine[i] = i;
  RMA(spl_rma_put_list(right, 80, pieces, 3));
  RMA(spl_rma_fence(rma));
  static const uint64_t order[9] = {0, 1, 2, 100, 50, 51, 52, 53, 54};
  EXPECT(0, memcmp(window_words + 10, order, sizeof order));
  RMA(spl_rma_barrier(rma));
  memset(mine, 0, 200 * 8);
  RMA(spl_rma_get_list(right, 80, pieces, 3));
  RMA(spl_rma_flush_all(rma));
  EXPECT(100, mine[100]);
  EXPECT(54, mine[54]);
  EXPECT(2, mine[2]);
  EXPECT(0, mine[3]);
  free(mine);
}

static void elements(void) {
  const unsigned from = (my_rank + ranks - 1) % ranks;
  uint64_t* const add = malloc(BYTES);
  uint64_t* const old = malloc(BYTES);
  static const unsigned counts[] = {1, 100, 2000, 20000};
  for (unsigned c = 0; c < sizeof counts / sizeof *counts; ++c) {
    const unsigned count = counts[c];
    fence_and_fill();
    for (unsigned i = 0; i < count; ++i) add[i] = 17;
    RMA(spl_rma_accumulate(right, 8, add, count, PTL_SUM, PTL_UINT64_T));
    RMA(spl_rma_get_accumulate(right, 8, add, old, count, PTL_SUM, PTL_UINT64_T));
    RMA(spl_rma_flush(rma, to));
    EXPECT(-1, first_wrong(old, count, to, 1, 17)); /* the order is that of the calls */
    RMA(spl_rma_get_accumulate(right, 8, NULL, old, count, SPL_RMA_NO_OP, PTL_UINT64_T));
    RMA(spl_rma_flush(rma, to));
    EXPECT(-1, first_wrong(old, count, to, 1, 34));
    RMA(spl_rma_fence(rma));
    EXPECT(-1, first_wrong(window_words + 1, count, my_rank, 1, 34));
    EXPECT(mark(my_rank, count + 1), window_words[count + 1]);
    EXPECT(mark(my_rank, 0), window_words[0]);
    RMA(spl_rma_barrier(rma));
    for (unsigned i = 0; i < count; ++i) add[i] = mark(my_rank + 90, i);
    RMA(spl_rma_accumulate(right, 8, add, count, SPL_RMA_REPLACE, PTL_UINT64_T));
    RMA(spl_rma_fence(rma));
    EXPECT(-1, first_wrong(window_words + 1, count, from + 90, 0, 0));
  }
  /* Elements of other types, read back bit by bit. */
  fence_and_fill();
  const double doubles[2] = {-0.0, 0.5};
  double was[2] = {1, 1};
  RMA(spl_rma_put(right, 0, doubles, sizeof doubles));
  RMA(spl_rma_flush(rma, to));
  RMA(spl_rma_get_accumulate(right, 0, NULL, was, 2, SPL_RMA_NO_OP, PTL_DOUBLE));
  RMA(spl_rma_flush(rma, to));
  EXPECT(0, memcmp(was, doubles, sizeof was));
  RMA(spl_rma_get_accumulate(right, 0, NULL, was, 1, SPL_RMA_NO_OP, PTL_DOUBLE_COMPLEX));
  RMA(spl_rma_flush(rma, to));
  EXPECT(0, memcmp(was, doubles, sizeof was));
  RMA(spl_rma_accumulate(right, 8, doubles + 1, 1, PTL_PROD, PTL_DOUBLE));
  RMA(spl_rma_fetch_and_op(right, 8, doubles + 1, was, PTL_MAX, PTL_DOUBLE));
  RMA(spl_rma_fetch_and_op(right, 8, doubles + 1, was + 1, SPL_RMA_REPLACE, PTL_DOUBLE));
  RMA(spl_rma_flush(rma, to));
  EXPECT(1, was[0] == 0.25);
  EXPECT(1, was[1] == 0.5);
  const int32_t value = 7, compare = 5, other = 6;
  int32_t found[2] = {0, 0};
  const int32_t five = 5;
  RMA(spl_rma_put(right, 100, &five, 4));
  RMA(spl_rma_flush(rma, to));
  RMA(spl_rma_compare_and_swap(right, 100, &value, &other, found, PTL_INT32_T));
  RMA(spl_rma_compare_and_swap(right, 100, &value, &compare, found + 1, PTL_INT32_T));
  RMA(spl_rma_flush(rma, to));
  EXPECT(5, found[0]);
  EXPECT(5, found[1]);
  RMA(spl_rma_fence(rma));
  EXPECT(7, *(int32_t*)((char*)window_words + 100));
  free(add);
  free(old);
}

static void requests(void) {
  fence_and_fill();
  uint64_t out[4] = {1, 2, 3, 4}, in[4] = {0}, old[4] = {0};
  spl_rma_request *put, *get, *fetch, *add;
  RMA(spl_rma_get_request(right, 80, in, 32, &get));
  RMA(spl_rma_wait(get));
  EXPECT(-1, first_wrong(in, 4, to, 10, 0));
  RMA(spl_rma_accumulate_request(right, 80, out, 4, PTL_SUM, PTL_UINT64_T, &add));
  RMA(spl_rma_get_accumulate_request(right, 80, out, old, 4, SPL_RMA_REPLACE, PTL_UINT64_T, &fetch));
  RMA(spl_rma_put_request(right, 800, out, 32, &put));
  int done = 0;
  while (!done) RMA(spl_rma_test(put, &done));
  RMA(spl_rma_wait(fetch));
  RMA(spl_rma_wait(add));
  for (unsigned i = 0; i < 4; ++i) EXPECT(mark(to, 10 + i) + i + 1, old[i]);
  RMA(spl_rma_fence(rma));
  EXPECT(0, memcmp(window_words + 10, out, 32));
  EXPECT(0, memcmp(window_words + 100, out, 32));
  RMA(spl_rma_put_request(right, 0, out, 0, &put)); /* a put without bytes */
  RMA(spl_rma_wait(put));
}

/* A rank's key goes to its left neighbour by the window. */
static spl_rma_key_text told_by_right(const spl_rma_key_text* own) {
  spl_rma_key_text text;
  RMA(spl_rma_barrier(rma));
  memcpy(window_words, own, sizeof *own);
  RMA(spl_rma_barrier(rma));
  RMA(spl_rma_get(right, 0, &text, sizeof text));
  RMA(spl_rma_fence(rma));
  return text;
}

static void rights_and_ranges(void) {
  uint64_t memory[16], word = 1, old = 0;
  for (unsigned i = 0; i < 16; ++i) memory[i] = mark(my_rank, i);
  spl_rma_memory* registered;
  RMA(spl_rma_register(rma, memory, sizeof memory, 0, &registered));
  spl_rma_key_text own[3], other;
  const unsigned rights[3] = {SPL_RMA_READ, SPL_RMA_WRITE, SPL_RMA_ATOMIC};
  for (unsigned i = 0; i < 3; ++i) {
    RMA(spl_rma_export(registered, rights[i], &own[i]));
    other = told_by_right(&own[i]);
    spl_rma_key* key;
    RMA(spl_rma_import(rma, &other, &key));
    EXPECT(to, spl_rma_key_rank(key));
    EXPECT(sizeof memory, spl_rma_key_bytes(key));
    EXPECT(rights[i], spl_rma_key_rights(key));
    ANSWERS(i == 0 ? PTL_OK : PTL_ARG_INVALID, spl_rma_get(key, 8, &old, 8));
    ANSWERS(i == 1 ? PTL_OK : PTL_ARG_INVALID, spl_rma_put(key, 16, &word, 8));
    ANSWERS(i == 2 ? PTL_OK : PTL_ARG_INVALID, spl_rma_accumulate(key, 24, &word, 1, PTL_SUM, PTL_UINT64_T));
    ANSWERS(PTL_ARG_INVALID, spl_rma_get(key, 121, &old, 8));
    ANSWERS(PTL_ARG_INVALID, spl_rma_get(key, UINT64_MAX, &old, 8));
    ANSWERS(PTL_ARG_INVALID, spl_rma_put(key, 128, &word, 1));
    RMA(spl_rma_flush(rma, to));
    RMA(spl_rma_forget(key));
  }
  RMA(spl_rma_barrier(rma));
  EXPECT(1, memory[2]);
  EXPECT(mark(my_rank, 3) + 1, memory[3]);
  /* The last key is revoked: what comes by it fails at its origin, and changes nothing. */
  spl_rma_key* key;
  RMA(spl_rma_import(rma, &other, &key));
  RMA(spl_rma_revoke(registered, &own[2]));
  ANSWERS(PTL_ARG_INVALID, spl_rma_revoke(registered, &own[2]));
  RMA(spl_rma_barrier(rma));
  RMA(spl_rma_accumulate(key, 24, &word, 1, PTL_SUM, PTL_UINT64_T));
  RMA(spl_rma_fetch_and_op(key, 24, &word, &old, PTL_SUM, PTL_UINT64_T));
  ANSWERS(PTL_FAIL, spl_rma_flush(rma, to));
  EXPECT(1, strstr(spl_rma_error(rma), "2 operations") != NULL);
  ANSWERS(PTL_OK, spl_rma_flush(rma, to)); /* told once */
  spl_rma_counts counts;
  RMA(spl_rma_count(rma, to, &counts));
  EXPECT(2, counts.failed);
  EXPECT(counts.begun, counts.ended);
  spl_rma_request* request;
  RMA(spl_rma_accumulate_request(key, 24, &word, 1, PTL_SUM, PTL_UINT64_T, &request));
  ANSWERS(PTL_FAIL, spl_rma_wait(request));
  RMA(spl_rma_flush(rma, to));
  RMA(spl_rma_barrier(rma));
  EXPECT(mark(my_rank, 3) + 1, memory[3]);
  RMA(spl_rma_deregister(registered));
  /* Bytes that are no key. */
  other.bytes[20] ^= 1;
  ANSWERS(PTL_ARG_INVALID, spl_rma_import(rma, &other, &key));
  /* Operations that there are not. */
  ANSWERS(PTL_ARG_INVALID, spl_rma_accumulate(right, 0, &word, 1, SPL_RMA_NO_OP, PTL_UINT64_T));
  ANSWERS(PTL_ARG_INVALID, spl_rma_accumulate(right, 0, &word, 1, PTL_CSWAP, PTL_UINT64_T));
  ANSWERS(PTL_ARG_INVALID, spl_rma_accumulate(right, 0, &word, 1, PTL_BOR, PTL_DOUBLE));
  ANSWERS(PTL_ARG_INVALID, spl_rma_put(right, 0, NULL, 8));
  ANSWERS(PTL_ARG_INVALID, spl_rma_flush(rma, ranks));
}

/* Memory in pieces at the target. */
static void pieces_at_target(void) {
  uint64_t memory[32];
  for (unsigned i = 0; i < 32; ++i) memory[i] = mark(my_rank, i);
  const ptl_iovec_t pieces[3] = {{memory + 4, 16}, {memory + 20, 24}, {memory, 8}};
  spl_rma_memory* registered;
  RMA(spl_rma_register_list(rma, pieces, 3, 0, &registered));
  spl_rma_key_text own;
  RMA(spl_rma_export(registered, SPL_RMA_READ | SPL_RMA_WRITE, &own));
  const spl_rma_key_text other = told_by_right(&own);
  spl_rma_key* key;
  RMA(spl_rma_import(rma, &other, &key));
  EXPECT(48, spl_rma_key_bytes(key));
  const uint64_t out[6] = {1, 2, 3, 4, 5, 6};
  uint64_t in[6] = {0};
  RMA(spl_rma_put(key, 0, out, sizeof out));
  RMA(spl_rma_flush(rma, to));
  RMA(spl_rma_get(key, 8, in, 40));
  RMA(spl_rma_fence(rma));
  EXPECT(0, memcmp(in, out + 1, 40));
  EXPECT(1, memory[4]);
  EXPECT(2, memory[5]);
  EXPECT(mark(my_rank, 6), memory[6]);
  EXPECT(3, memory[20]);
  EXPECT(5, memory[22]);
  EXPECT(6, memory[0]);
  EXPECT(mark(my_rank, 1), memory[1]);
  RMA(spl_rma_barrier(rma));
  RMA(spl_rma_deregister(registered));
}

/* A column of the neighbour's matrix to a row here, and two blocks of words there. */
static void pieces_at_both_ends(void) {
  enum { ROWS = 30, COLUMNS = 25 };
  fence_and_fill();
  spl_rma_piece parts[ROWS];
  uint64_t column[ROWS + 2] = {0};
  const ptl_iovec_t halves[3] = {{column + 1, 8 * 8}, {column + 9, 0}, {column + 9, (ROWS - 8) * 8}};
  for (unsigned i = 0; i < ROWS; ++i) parts[i] = (spl_rma_piece){(i * COLUMNS + 3) * 8, 8};
  RMA(spl_rma_get_pieces(right, parts, ROWS, halves, 3));
  RMA(spl_rma_flush(rma, to));
  for (unsigned i = 0; i < ROWS; ++i) EXPECT(mark(to, i * COLUMNS + 3), column[i + 1]);
  EXPECT(0, column[0]);
  EXPECT(0, column[ROWS + 1]);
  RMA(spl_rma_barrier(rma));
  for (unsigned i = 0; i < ROWS; ++i) column[i + 1] = 5000 + i;
  RMA(spl_rma_put_pieces(right, parts, ROWS, halves, 3));
  ANSWERS(PTL_ARG_INVALID, spl_rma_put_pieces(right, parts, ROWS - 1, halves, 3));
  parts[7].offset = BYTES - 7;
  ANSWERS(PTL_ARG_INVALID, spl_rma_put_pieces(right, parts, ROWS, halves, 3));
  RMA(spl_rma_fence(rma));
  unsigned wrong_words = 0;
  for (unsigned i = 0; i < ROWS * COLUMNS; ++i) {
    const uint64_t should_be = i % COLUMNS == 3 ? 5000 + i / COLUMNS : mark(my_rank, i);
    wrong_words += window_words[i] != should_be;
  }
  EXPECT(0, wrong_words);
}

int main(int argc, char** argv) {
  begin();
  open_rma(argc, argv);
  window_words = malloc(BYTES);
  to = (my_rank + 1) % ranks;
  RMA(spl_rma_window_make(rma, window_words, BYTES, SPL_RMA_ALL, 0, &window));
  right = spl_rma_window_key(window, to);
  EXPECT(1, spl_rma_window_key(window, ranks) == NULL);
  puts_and_gets();
  elements();
  requests();
  rights_and_ranges();
  pieces_at_target();
  pieces_at_both_ends();
  RMA(spl_rma_window_free(window));
  free(window_words);
  RMA(spl_rma_close(rma));
  return end();
}
