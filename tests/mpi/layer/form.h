/* Form - a random MPI datatype with the list of its bytes, which is written down beside it.
 *
 * Contract: unit_of() draws a short sequence of basic types; form_of() draws a committed datatype of `n` such units, in
 * any nesting of constructors, with the same signature whatever it looks like. Without `overlap` no byte is named twice
 * by `count` elements. Pieces are in packed order; bounds come from the MPI. Datatypes that the MPI itself gets wrong
 * (docs/mpi-differences.md) are drawn again: each is tried in a message to oneself, which no layer touches,
 * and must be right on all ranks: form_of() is collective. */
#ifndef FORM_H
#define FORM_H
#include <mpi.h>

#include "draw.h"

enum { unit_max = 4 };

typedef struct {
  int kinds, kind[unit_max];
  long size;
  int elements; /* MPI's basic elements, as MPI_Get_elements counts them */
} Unit;

typedef struct {
  MPI_Datatype type;
  long units;          /* the units of one element */
  long size, extent;   /* bytes of one element */
  long pieces, room;   /* pieces of one element, in packed order */
  long *at, *length;   /* bytes from the element's address */
  long low, high;      /* the place of the element's bytes */
  char name[200];      /* the constructors, for reports */
} Form;

void forms_begin(MPI_Comm self, MPI_Comm all); /* threads do this once: communicators of this process, and of all */
Unit unit_of(Draw* draw);
Form form_of(Draw* draw, Unit const* unit, long n, long count, int overlap);
Form form_packed(void); /* one byte of MPI_PACKED */
void form_free(Form* form);      /* the datatype goes, too, if it is still there */
void form_free_type(Form* form);

/* The bytes of `count` elements at `base`, `bytes` of them, to and from a packed row. */
void form_gather(Form const* form, long count, long bytes, unsigned char const* base, unsigned char* packed);
void form_scatter(Form const* form, long count, long bytes, unsigned char* base, unsigned char const* packed);
/* The first byte of `count` elements, and the one behind the last. */
void form_span(Form const* form, long count, long* low, long* high);
#endif
