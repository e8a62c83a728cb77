#include "ethernet/port/record_port.hpp"

#include <time.h>

#include "base/log.hpp"
#include "ethernet/port/pcap_file.hpp"

namespace spinloom::port {

namespace {

int64_t host_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class RecordPort final : public FramePort {
 public:
  RecordPort(PortPointer inner, PcapWriter file) : inner_(std::move(inner)), file_(std::move(file)) {}

  Result<size_t> receive(std::span<Bytes> batch) override {
    file_.keep();
    SPL_ASSIGN(const size_t count, inner_->receive(batch));
    record_frames(batch.first(count));
    return count;
  }
  Result<size_t> send(std::span<const Bytes> frames) override {
    SPL_ASSIGN(const size_t count, inner_->send(frames));
    record_frames(frames.first(count));
    return count;
  }
  bool ended() const override { return inner_->ended(); }
  std::optional<int64_t> time_ns() const override { return inner_->time_ns(); }
  void set_time_ns(int64_t time_ns) override { inner_->set_time_ns(time_ns); }
  packet::MacAddress mac() const override { return inner_->mac(); }
  size_t mtu() const override { return inner_->mtu(); }
  Counters counters() override { return inner_->counters(); }
  int descriptor() const override { return inner_->descriptor(); }
  std::string description() const override { return inner_->description() + ", recorded"; }

 private:
  // A file that takes no more ends the record, not the port.
  void record_frames(std::span<const Bytes> frames) {
    if (frames.empty() || !recording_) return;
    if (const Status written = append(frames); !written) {
      recording_ = false;
      log::emit(log::Level::warning, "port", written.error().message + "; nothing more is recorded, the port goes on");
    }
  }
  Status append(std::span<const Bytes> frames) {
    const int64_t now_ns = host_time_ns();
    for (const Bytes frame : frames) SPL_TRY(file_.append(frame, now_ns));
    return file_.flush();
  }

  PortPointer inner_;
  PcapWriter file_;
  bool recording_ = true;
};

}  // namespace

Result<PortPointer> record(PortPointer inner, const std::string& path) {
  SPL_ASSIGN(PcapWriter file, PcapWriter::create(path));
  return PortPointer(std::make_unique<RecordPort>(std::move(inner), std::move(file)));
}

}  // namespace spinloom::port
