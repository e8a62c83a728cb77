/* Uses every function of spinloom/layout.h from C and compares with what MPI's rules demand. Exit code 1: a check
 * failed, its line is printed. */
#include <spinloom/layout.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, spl_layout_last_error()); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)
#define GOOD(call) CHECK((call) == SPL_LAYOUT_OK)

/* The layout prints as it should, and is freed. */
static void prints(spl_layout* layout, const char* expected) {
  char text[256];
  size_t needed = 0;
  GOOD(spl_layout_text(layout, text, sizeof text, &needed));
  CHECK(needed == strlen(text) + 1);
  if (strcmp(text, expected) != 0) printf("%s, not %s\n", text, expected);
  CHECK(strcmp(text, expected) == 0);
  GOOD(spl_layout_text(layout, text, 5, &needed));
  CHECK(strlen(text) == (strlen(expected) < 4 ? strlen(expected) : 4) && needed == strlen(expected) + 1);
  spl_layout_free(layout);
}

static void constructors(void) {
  static const int64_t lengths[] = {2, 1};
  static const int64_t places[] = {0, 5};
  static const int64_t sizes[] = {4, 6}, subsizes[] = {2, 3}, starts[] = {1, 2};
  static const spl_layout_distribution dealt[] = {SPL_LAYOUT_BLOCK, SPL_LAYOUT_CYCLIC};
  static const int64_t arguments[] = {SPL_LAYOUT_DEFAULT_ARGUMENT, 2}, grid[] = {2, 1};
  spl_layout* number = NULL;
  spl_layout* made = NULL;
  GOOD(spl_layout_primitive("int", &number));
  GOOD(spl_layout_contiguous(3, number, &made));
  prints(made, "contig(3, int)");
  GOOD(spl_layout_vector(3, 2, 5, number, &made));
  prints(made, "vector(3, 2, 5, int)");
  GOOD(spl_layout_hvector(3, 2, -20, number, &made));
  prints(made, "hvector(3, 2, -20B, int)");
  GOOD(spl_layout_indexed(2, lengths, places, number, &made));
  prints(made, "indexed([0 x 2, 5 x 1], int)");
  GOOD(spl_layout_hindexed(2, lengths, places, number, &made));
  prints(made, "hindexed([0B x 2, 5B x 1], int)");
  GOOD(spl_layout_indexed_block(2, 3, places, number, &made));
  prints(made, "idxblock(3, [0, 5], int)");
  GOOD(spl_layout_hindexed_block(2, 3, places, number, &made));
  prints(made, "hidxblock(3, [0B, 5B], int)");
  GOOD(spl_layout_resized(-4, 40, number, &made));
  prints(made, "resized(-4B, 40B, int)");
  GOOD(spl_layout_subarray(2, sizes, subsizes, starts, SPL_LAYOUT_ORDER_C, number, &made));
  prints(made, "subarray([4, 6], [2, 3], [1, 2], C, int)");
  GOOD(spl_layout_darray(2, 1, 2, sizes, dealt, arguments, grid, SPL_LAYOUT_ORDER_FORTRAN, number, &made));
  prints(made, "darray(2, 1, [4, 6], [block, cyclic], [default, 2], [2, 1], F, int)");
  GOOD(spl_layout_dup(number, &made));
  prints(made, "dup(int)");
  spl_layout* real = NULL;
  GOOD(spl_layout_from_text("double # a comment", &real));
  const spl_layout* members[] = {number, real};
  GOOD(spl_layout_struct(2, lengths, places, members, &made));
  spl_layout_free(real); /* children may go first */
  prints(made, "struct([(0B, 2, int), (5B, double)])");
  GOOD(spl_layout_indexed(0, NULL, NULL, number, &made));
  prints(made, "indexed([], int)");
  spl_layout_free(number);
  spl_layout_free(NULL);
}

static void questions(void) {
  spl_layout* layout = NULL;
  GOOD(spl_layout_from_text("resized(-4B, 40B, vector(3, 2, 5, int))", &layout));
  CHECK(spl_layout_size(layout) == 24 && spl_layout_lb(layout) == -4 && spl_layout_extent(layout) == 40);
  CHECK(spl_layout_true_lb(layout) == 0 && spl_layout_true_extent(layout) == 48);
  int64_t bytes = 0, first = 0, last = 0, found = 0;
  GOOD(spl_layout_packed_bytes(layout, 7, &bytes));
  CHECK(bytes == 168);
  GOOD(spl_layout_reach(layout, 2, &first, &last));
  CHECK(first == 0 && last == 88);
  char text[64];
  GOOD(spl_layout_normal_form(layout, text, sizeof text, NULL));
  CHECK(strcmp(text, "0 + vector(3, 8 B, stride 20 B)") == 0);
  spl_layout_block blocks[2];
  CHECK(spl_layout_blocks(layout, 1, blocks, 2, &found) == SPL_LAYOUT_INVALID); /* it is not committed */
  GOOD(spl_layout_commit(layout));
  GOOD(spl_layout_commit(layout));
  GOOD(spl_layout_blocks(layout, 1, blocks, 2, &found));
  CHECK(found == 3 && blocks[1].offset == 20 && blocks[1].bytes == 8);
  const void* blob = NULL;
  size_t blob_bytes = 0;
  GOOD(spl_layout_blob(layout, &blob, &blob_bytes));
  CHECK(blob_bytes == 112 && memcmp(blob, "SPLB", 4) == 0);
  CHECK(strlen(spl_layout_version()) > 0);
  spl_layout_free(layout);
}

/* Columns of a matrix: pack, in parts, back, and transposed in one copy. */
static void movement(void) {
  enum { rows = 37, columns = 23 };
  static double matrix[rows][columns], back[rows][columns], transposed[columns][rows];
  static double packed[columns][rows], parts[columns][rows];
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) matrix[i][j] = 100.0 * i + j;
  }
  spl_layout *real = NULL, *column = NULL, *by_column = NULL, *rows_of = NULL;
  GOOD(spl_layout_primitive("double", &real));
  GOOD(spl_layout_vector(rows, 1, columns, real, &column));
  GOOD(spl_layout_resized(0, sizeof(double), column, &by_column));
  GOOD(spl_layout_contiguous(rows, real, &rows_of));
  GOOD(spl_layout_commit(by_column));
  GOOD(spl_layout_commit(rows_of));

  GOOD(spl_layout_pack(by_column, columns, matrix, packed));
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) CHECK(packed[j][i] == matrix[i][j]);
  }
  const int64_t total = (int64_t)sizeof packed;
  for (int64_t at = 0; at < total; at += 1001) {
    const int64_t end = at + 1001 < total ? at + 1001 : total;
    GOOD(spl_layout_pack_range(by_column, columns, matrix, at, end, (char*)parts + at));
    GOOD(spl_layout_unpack_range(by_column, columns, back, at, end, (const char*)packed + at));
  }
  CHECK(memcmp(parts, packed, sizeof packed) == 0 && memcmp(back, matrix, sizeof matrix) == 0);
  memset(back, 0, sizeof back);
  GOOD(spl_layout_unpack(by_column, columns, back, packed));
  CHECK(memcmp(back, matrix, sizeof matrix) == 0);
  GOOD(spl_layout_copy(by_column, columns, matrix, rows_of, columns, transposed));
  CHECK(memcmp(transposed, packed, sizeof packed) == 0);
  spl_layout_free(real);
  spl_layout_free(column);
  spl_layout_free(by_column);
  spl_layout_free(rows_of);
}

static void errors(void) {
  spl_layout *real = NULL, *twice = NULL, *none = NULL, *dummy = NULL;
  char memory[8] = {0};
  GOOD(spl_layout_primitive("double", &real));
  CHECK(spl_layout_primitive("integre", &none) == SPL_LAYOUT_INVALID && none == NULL);
  CHECK(strstr(spl_layout_last_error(), "'integre'") != NULL);
  CHECK(spl_layout_primitive(NULL, &none) == SPL_LAYOUT_INVALID);
  CHECK(strcmp(spl_layout_last_error(), "name is NULL") == 0);
  CHECK(spl_layout_contiguous(3, NULL, &none) == SPL_LAYOUT_INVALID);
  CHECK(spl_layout_contiguous(3, real, NULL) == SPL_LAYOUT_INVALID);
  CHECK(spl_layout_contiguous(-1, real, &none) == SPL_LAYOUT_INVALID);
  CHECK(spl_layout_contiguous(INT64_MAX, real, &none) == SPL_LAYOUT_OVERFLOW);
  CHECK(spl_layout_from_text("vector(3, 2", &none) == SPL_LAYOUT_INVALID);
  CHECK(strstr(spl_layout_last_error(), "column 12") != NULL);
  CHECK(spl_layout_indexed(2, NULL, NULL, real, &none) == SPL_LAYOUT_INVALID);
  static const int64_t one[] = {1}; /* nothing is read of lists that are said to be this long */
  CHECK(spl_layout_indexed(INT64_MAX, one, one, real, &none) == SPL_LAYOUT_OVERFLOW);
  CHECK(strstr(spl_layout_last_error(), "type_list_max") != NULL);
  CHECK(spl_layout_struct(INT64_MAX / 8, one, one, NULL, &none) == SPL_LAYOUT_OVERFLOW);
  CHECK(spl_layout_subarray(1, one, one, one, (spl_layout_order)2, real, &none) == SPL_LAYOUT_INVALID);
  CHECK(strstr(spl_layout_last_error(), "order 2") != NULL && none == NULL);
  CHECK(spl_layout_pack(real, 1, memory, memory) == SPL_LAYOUT_INVALID);
  CHECK(strstr(spl_layout_last_error(), "spl_layout_commit") != NULL);
  GOOD(spl_layout_commit(real));
  CHECK(spl_layout_pack(real, -1, memory, memory) == SPL_LAYOUT_INVALID);
  CHECK(spl_layout_pack(real, 1, memory, NULL) == SPL_LAYOUT_INVALID);
  CHECK(spl_layout_pack_range(real, 1, memory, 3, 9, memory) == SPL_LAYOUT_INVALID);
  GOOD(spl_layout_hvector(2, 1, 4, real, &twice));
  GOOD(spl_layout_commit(twice));
  CHECK(spl_layout_unpack(twice, 1, memory, memory) == SPL_LAYOUT_INVALID);
  CHECK(strstr(spl_layout_last_error(), "packed bytes 4 and 8 both land at offset 4") != NULL);
  CHECK(spl_layout_copy(real, 1, memory, twice, 1, memory) == SPL_LAYOUT_INVALID);
  GOOD(spl_layout_pack(real, 0, NULL, NULL));
  GOOD(spl_layout_dup(real, &dummy));
  CHECK(spl_layout_commit(NULL) == SPL_LAYOUT_INVALID);
  spl_layout_free(dummy);
  spl_layout_free(real);
  spl_layout_free(twice);
}

int main(void) {
  constructors();
  questions();
  movement();
  errors();
  puts("good");
  return 0;
}
