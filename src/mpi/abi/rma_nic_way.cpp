#include "mpi/abi/rma_nic_way.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

std::vector<ptl_rank_t> RmaNicWay::ranks_of(std::span<const int> group) const {
  std::vector<ptl_rank_t> ranks;
  for (const int rank : group) ranks.push_back(rank_of(rank));
  return ranks;
}

int RmaNicWay::post(std::span<const int> origins) {
  const std::vector<ptl_rank_t> group = ranks_of(origins);
  return nic_.spl_rma_post(window_, group.data(), static_cast<uint32_t>(group.size()));
}

int RmaNicWay::start_test(std::span<const int> targets, int* done) {
  const std::vector<ptl_rank_t> group = ranks_of(targets);
  return nic_.spl_rma_start_test(window_, group.data(), static_cast<uint32_t>(group.size()), done);
}

int RmaNicWay::close_test(int* done) {
  for (const Part& each : parts_) nic_.spl_rma_forget(each.word);
  nic_.spl_rma_deregister(word_->memory);
  nic_.spl_rma_window_drop(window_);
  *done = 1;
  return PTL_OK;
}

int RmaNicWay::move(int target, std::span<const ptl_iovec_t> here, std::span<const spl_rma_piece> there, bool is_put) {
  spl_rma_key* const key = part(target).key;
  if (here.size() == 1 && there.size() == 1) {
    return is_put ? nic_.spl_rma_put(key, there[0].offset, here[0].iov_base, there[0].bytes)
                  : nic_.spl_rma_get(key, there[0].offset, here[0].iov_base, there[0].bytes);
  }
  return is_put ? nic_.spl_rma_put_pieces(key, there.data(), there.size(), here.data(), here.size())
                : nic_.spl_rma_get_pieces(key, there.data(), there.size(), here.data(), here.size());
}

int RmaNicWay::accumulate(int target, uint64_t offset, const void* from, void* result, uint64_t count, int op,
                          ptl_datatype_t type) {
  spl_rma_key* const key = part(target).key;
  return result == nullptr ? nic_.spl_rma_accumulate(key, offset, from, count, op, type)
                           : nic_.spl_rma_get_accumulate(key, offset, from, result, count, op, type);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
