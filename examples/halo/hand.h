/* The loops that a program would write to pack and unpack the faces of a 3-D grid of doubles. Their own translation
 * unit, with sizes known at run time only, as in a real program. */
#ifndef HAND_H
#define HAND_H

/* A box of the grid: start and length along z, y, x; x is fastest. */
struct box {
  int start[3];
  int length[3];
};

void hand_pack(const double* grid, const int sizes[3], const struct box* box, double* packed);
void hand_unpack(double* grid, const int sizes[3], const struct box* box, const double* packed);

#endif
