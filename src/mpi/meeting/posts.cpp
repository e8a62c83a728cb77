#include "mpi/meeting/posts.hpp"

#include <new>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {

Posts::~Posts() {
  if (counts_ != nullptr) (void)process_heap().release(counts_);
}

Posts Posts::make(size_t ranks) {
  Posts posts;
  void* const start = process_heap().allocate(ranks * sizeof(Count));
  if (start == nullptr) return posts;
  posts.counts_ = static_cast<Count*>(start);
  for (size_t i = 0; i < ranks; ++i) new (&posts.counts_[i]) Count(0);
  return posts;
}

}  // namespace spinloom::mpi
