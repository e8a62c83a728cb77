// Settings of the MPI layer from variables, and the sentences about wrong ones.
#include "mpi/messages/settings.hpp"

#include <gtest/gtest.h>

namespace spinloom::mpi {
namespace {

TEST(MpiSettings, ReadsWhatItUnderstandsAndNamesTheRest) {
  const char* const environment[] = {"HOME=/",
                                     "SPINLOOM_MPI=off",
                                     "SPINLOOM_MPI_PATH=staged",
                                     "SPINLOOM_MPI_MIN_BYTES=4K",
                                     "SPINLOOM_MPI_CHUNK_BYTES=512",
                                     "SPINLOOM_MPI_STAGING_BYTES=2G",
                                     "SPINLOOM_MPI_RECORD_CLOCK=cpu",
                                     nullptr};
  const Settings settings = read_settings(environment);
  EXPECT_TRUE(settings.is_off);
  EXPECT_EQ(settings.path, Path::staged);
  EXPECT_TRUE(settings.records_cpu_time);
  EXPECT_EQ(settings.min_bytes, 4096);
  EXPECT_EQ(settings.staging_bytes, int64_t{2} << 30);
  EXPECT_EQ(settings.chunk_bytes, Settings{}.chunk_bytes);
  ASSERT_EQ(settings.complaints.size(), 1u);
  EXPECT_EQ(settings.complaints[0],
            "SPINLOOM_MPI_CHUNK_BYTES=512 is ignored: it must be a number of bytes from 1024, such as 65536 or 64K");
}

TEST(MpiSettings, NumbersThatDoNotFitAreNotTaken) {
  const char* const environment[] = {"SPINLOOM_MPI_MIN_BYTES=99999999999999999999", "SPINLOOM_MPI_STAGING_BYTES=-1",
                                     "SPINLOOM_MPI_PATH=fast", nullptr};
  const Settings settings = read_settings(environment);
  EXPECT_EQ(settings.min_bytes, Settings{}.min_bytes);
  EXPECT_EQ(settings.staging_bytes, Settings{}.staging_bytes);
  EXPECT_EQ(settings.complaints.size(), 3u);
}

TEST(MpiSettings, BuffersOfGpusGoByTheHostWhereThatIsAskedFor) {
  const char* const by_host[] = {"SPINLOOM_MPI_GPU=host", nullptr};
  const char* const on[] = {"SPINLOOM_MPI_GPU=on", nullptr};
  const char* const misspelt[] = {"SPINLOOM_MPI_GPU=hots", nullptr};
  EXPECT_TRUE(read_settings(by_host).gpu_by_host);
  EXPECT_TRUE(read_settings(by_host).complaints.empty());
  EXPECT_FALSE(read_settings(on).gpu_by_host);
  ASSERT_EQ(read_settings(misspelt).complaints.size(), 1u);
  EXPECT_EQ(read_settings(misspelt).complaints[0],
            "SPINLOOM_MPI_GPU=hots is ignored: it must be auto, on, off or host");
}

TEST(MpiSettings, WindowsStandOnMappedMemoryUnlessThatIsNotWanted) {
  const auto read = [](std::vector<const char*> environment) {
    environment.push_back(nullptr);
    return read_settings(environment.data());
  };
  EXPECT_TRUE(read({}).maps_windows());
  EXPECT_FALSE(read({}).rma);
  EXPECT_TRUE(read({"SPINLOOM_MPI_RMA=mapped"}).maps_windows());
  EXPECT_FALSE(read({"SPINLOOM_MPI_RMA=mapped"}).rma);
  EXPECT_TRUE(read({"SPINLOOM_MPI_RMA=on"}).maps_windows());
  EXPECT_TRUE(read({"SPINLOOM_MPI_RMA=on"}).rma);
  EXPECT_FALSE(read({"SPINLOOM_MPI_RMA=nic"}).maps_windows());
  EXPECT_TRUE(read({"SPINLOOM_MPI_RMA=nic"}).rma);
  EXPECT_FALSE(read({"SPINLOOM_MPI_RMA=off"}).maps_windows());
  EXPECT_FALSE(read({"SPINLOOM_MPI_RMA=off"}).rma);
  EXPECT_FALSE(read({"SPINLOOM_MPI_PATH=cma"}).maps_windows());
  EXPECT_FALSE(read({"SPINLOOM_MPI_PATH=pass"}).maps_windows());
  EXPECT_EQ(read({"SPINLOOM_MPI_RMA=yes"}).complaints.size(), 1U);
}

TEST(MpiSettings, MisspeltNamesAreSaid) {
  const char* const environment[] = {"SPINLOOM_MPI_MIN=64", "SPINLOOM_MPIX=1", nullptr};
  const Settings settings = read_settings(environment);
  EXPECT_EQ(settings.min_bytes, Settings{}.min_bytes);
  ASSERT_EQ(settings.complaints.size(), 2u);
  EXPECT_EQ(settings.complaints[0], "SPINLOOM_MPI_MIN is ignored: the layer knows no such variable");
}

}  // namespace
}  // namespace spinloom::mpi
