/* Form - a random datatype with the list of its bytes, which is written down beside it.
 *
 * Contract: a unit is a short sequence of basic types. form_of() draws a committed datatype of `units` units, with the
 * same signature whatever it looks like. No byte is named twice by elements that lie side by side, at most `elements`.
 * Pieces are in packed order; the extent comes from the MPI, and is never negative. What the MPI itself gets wrong in
 * messages to this rank is drawn again. */
#ifndef FORM_H
#define FORM_H
#include <mpi.h>

#include "../layer/draw.h"

enum { parts_max = 3 };

typedef struct {
  int parts, bytes[parts_max];
  MPI_Datatype type[parts_max];
  long size;
} Unit;

typedef struct {
  long at, length;
} Piece;

typedef struct {
  MPI_Datatype type;
  long units, size, extent; /* numbers of one element */
  long low, high;           /* the place of its bytes, from its address */
  long pieces, room;
  Piece* piece;
} Form;

void forms_begin(void);
void forms_end(void);
Unit unit_of(Draw* draw);
Form form_of(Draw* draw, Unit const* unit, long units, long elements);
Form form_empty(void); /* a form without any byte */
void form_free_type(Form* form);
void form_free(Form* form); /* the datatype goes, too, if it is still there */
/* A number that divides n. */
long divisor_of(Draw* draw, long n);

/* The bytes of `count` elements at `base`, to and from a packed row. */
void form_get(Form const* form, long count, unsigned char const* base, unsigned char* packed);
void form_put(Form const* form, long count, unsigned char* base, unsigned char const* packed);
#endif
