// The header is C++ as well: a layout under a unique_ptr.
#include <spinloom/layout.h>

#include <cstdio>
#include <memory>
#include <vector>

int main() {
  spl_layout* made = nullptr;
  if (spl_layout_from_text("vector(4, 1, 2, int)", &made) != SPL_LAYOUT_OK) return 1;
  const std::unique_ptr<spl_layout, void (*)(spl_layout*)> layout(made, spl_layout_free);
  if (spl_layout_commit(layout.get()) != SPL_LAYOUT_OK) return 1;
  const std::vector<int> array = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int> packed(4);
  if (spl_layout_pack(layout.get(), 1, array.data(), packed.data()) != SPL_LAYOUT_OK) return 1;
  if (packed != std::vector<int>{0, 2, 4, 6}) return 1;
  std::puts("good");
  return 0;
}
