#include "ethernet/port/pcap_port.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "ethernet/port/pcap_file.hpp"
#include "nic/packet/ethernet.hpp"

namespace spinloom::port {

namespace {

constexpr size_t file_mtu = 9000;
constexpr size_t frames_between_flushes = 64;

// The common part of both ports: the file for sent frames, and the counters.
class FilePort : public FramePort {
 public:
  FilePort(std::string name, std::optional<PcapWriter> out) : name_(std::move(name)), out_(std::move(out)) {}

  Result<size_t> receive(std::span<Bytes> batch) final {
    if (out_) out_->keep();
    SPL_ASSIGN(const size_t count, next(batch));
    if (ended()) SPL_TRY(flush());
    return count;
  }
  Result<size_t> send(std::span<const Bytes> frames) override {
    SPL_TRY(check_lengths(frames));
    if (out_) {
      for (const Bytes frame : frames) SPL_TRY(out_->append(frame, time_ns_));
      unflushed_ += frames.size();
      if (unflushed_ >= frames_between_flushes || ended()) SPL_TRY(flush());
    }
    counters_.sent += frames.size();
    return frames.size();
  }
  std::optional<int64_t> time_ns() const override { return time_ns_; }
  void set_time_ns(int64_t time_ns) override { time_ns_ = time_ns; }
  packet::MacAddress mac() const override { return mac_for("pcap"); }
  size_t mtu() const override { return file_mtu; }
  Counters counters() override { return counters_; }
  int descriptor() const override { return -1; }
  std::string description() const override { return name_; }

 protected:
  virtual Result<size_t> next(std::span<Bytes> batch) = 0;
  Status flush() { return std::exchange(unflushed_, 0) == 0 ? Status{} : out_->flush(); }
  // Says which frames may come in one batch: all, or only those of one time.
  BatchTimes times() const { return out_ ? BatchTimes::same : BatchTimes::any; }

  // Takes frames that are too long, or shorter than a header, out of a batch. Returns the number of frames left.
  size_t kept(std::span<Bytes> batch) {
    const auto last = std::remove_if(batch.begin(), batch.end(), [this](Bytes frame) {
      return frame.size() > frame_bytes_max() || frame.size() < packet::ethernet_header_bytes;
    });
    const auto count = static_cast<size_t>(last - batch.begin());
    counters_.truncated += batch.size() - count;
    counters_.received += count;
    return count;
  }

  std::string name_;
  std::optional<PcapWriter> out_;
  Counters counters_;
  int64_t time_ns_ = 0;
  size_t unflushed_ = 0;  // frames that may not be in the file yet; the port's end writes them
};

class PcapPort final : public FilePort {
 public:
  PcapPort(std::string name, std::optional<PcapReader> in, std::optional<PcapWriter> out)
      : FilePort(std::move(name), std::move(out)), in_(std::move(in)) {}

  Result<size_t> next(std::span<Bytes> batch) override {
    size_t count = 0;
    while (count == 0 && !batch.empty() && !ended()) {
      const uint64_t before = in_->truncated_records();
      SPL_ASSIGN(const size_t read, in_->read(batch, times()));
      counters_.truncated += in_->truncated_records() - before;
      count = kept(batch.first(read));
    }
    if (count > 0) time_ns_ = in_->time_ns();
    return count;
  }
  bool ended() const override { return !in_ || in_->ended(); }

 private:
  std::optional<PcapReader> in_;
};

class ReplayPort final : public FilePort {
 public:
  struct Place {
    size_t begin;
    size_t bytes;
    int64_t time_ns;
  };
  ReplayPort(std::string name, uint64_t times, std::optional<PcapWriter> out)
      : FilePort(std::move(name), std::move(out)), left_(times) {}

  Status load(PcapReader& in) {
    std::array<Bytes, 256> batch;
    while (!in.ended()) {
      SPL_ASSIGN(const size_t read, in.read(batch, times()));
      for (const Bytes frame : std::span(batch).first(kept(std::span(batch).first(read)))) {
        places_.push_back({bytes_.size(), frame.size(), in.time_ns()});
        bytes_.insert(bytes_.end(), frame.begin(), frame.end());
      }
    }
    counters_.truncated += in.truncated_records();
    counters_.received = 0;
    if (places_.empty()) left_ = 0;
    return {};
  }

  Result<size_t> next(std::span<Bytes> batch) override {
    size_t count = 0;
    while (count < batch.size() && left_ > 0) {
      const Place place = places_[next_];
      if (count > 0 && times() == BatchTimes::same && place.time_ns != time_ns_) break;
      time_ns_ = place.time_ns;
      batch[count++] = Bytes(bytes_).subspan(place.begin, place.bytes);
      if (++next_ == places_.size()) {
        next_ = 0;
        --left_;
      }
    }
    counters_.received += count;
    return count;
  }
  bool ended() const override { return left_ == 0; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<Place> places_;
  size_t next_ = 0;
  uint64_t left_;
};

Result<std::optional<PcapWriter>> writer_of(const std::string& out) {
  if (out.empty()) return std::optional<PcapWriter>();
  SPL_ASSIGN(PcapWriter writer, PcapWriter::create(out));
  return std::optional(std::move(writer));
}

}  // namespace

Result<PortPointer> open_pcap_port(const std::string& in, const std::string& out) {
  std::optional<PcapReader> reader;
  if (!in.empty()) {
    SPL_ASSIGN(reader, PcapReader::open(in));
  }
  SPL_ASSIGN(auto writer, writer_of(out));
  return PortPointer(std::make_unique<PcapPort>(text("pcap:", in, ",", out), std::move(reader), std::move(writer)));
}

Result<PortPointer> open_replay_port(const std::string& in, uint64_t times, const std::string& out) {
  SPL_ASSIGN(PcapReader reader, PcapReader::open(in));
  SPL_ASSIGN(auto writer, writer_of(out));
  auto port = std::make_unique<ReplayPort>(text("replay:", in, ",", times, ",", out), times, std::move(writer));
  SPL_TRY(port->load(reader));
  return PortPointer(std::move(port));
}

}  // namespace spinloom::port
