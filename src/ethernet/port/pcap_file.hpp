// Pcap files - frames out of a capture file, and frames into a new one.
//
// Contract: PcapReader::read() returns the next frames, as many as `batch` and its buffer take; with BatchTimes::same,
//   only frames of one time. It returns 0 at the end of the file. A frame of which the record has only the beginning is
//   left out and counted in truncated_records(). A file that ends within a record is an Error. PcapWriter makes a file
//   that does not exist yet; when flush() returns, all frames given to append() are written. Its file is removed again
//   if neither keep() nor append() nor flush() was called: a start that fails leaves nothing. No file is ever
//   overwritten.
// Invariants: (1) frames stay until the next read(); (2) frames have no check sequence, also where the file has them;
//   (3) checksums that a sender left to hardware, which a capture on its machine shows unfinished, are finished.
// Threads: one at a time. Time: none of its own: time_ns() is that of the last record read.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "ethernet/port/pcap_format.hpp"
#include "nic/packet/read.hpp"

namespace spinloom::port {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

enum class BatchTimes : uint8_t { any, same };

class PcapReader {
 public:
  static Result<PcapReader> open(const std::string& path);
  static Result<PcapReader> open(File file, std::string name);

  [[nodiscard]] Result<size_t> read(std::span<packet::Bytes> batch, BatchTimes times = BatchTimes::any);
  [[nodiscard]] int64_t time_ns() const { return time_ns_; }
  [[nodiscard]] uint64_t truncated_records() const { return truncated_records_; }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  PcapReader(File file, std::string name, PcapFormat format);
  Result<bool> next();
  Status ends_within(const char* what) const;

  File file_;
  std::string name_;
  PcapFormat format_;
  std::unique_ptr<uint8_t[]> buffer_;
  PcapRecord record_;  // the next one, if there is one
  bool has_record_ = false;  // its header was read, its bytes were not
  bool ended_ = false;
  uint64_t records_ = 0;
  uint64_t truncated_records_ = 0;
  int64_t time_ns_ = 0;
};

class PcapWriter {
 public:
  static Result<PcapWriter> create(const std::string& path, const PcapFormat& format = {});
  PcapWriter(PcapWriter&&) = default;
  PcapWriter& operator=(PcapWriter&&) = delete;
  ~PcapWriter() {
    if (file_ != nullptr && !kept_) std::remove(name_.c_str());
  }

  void keep() { kept_ = true; }
  [[nodiscard]] Status append(packet::Bytes frame, int64_t time_ns);
  [[nodiscard]] Status flush();

 private:
  PcapWriter(File file, std::string name, const PcapFormat& format)
      : file_(std::move(file)), name_(std::move(name)), format_(format) {}
  Status not_written() const;

  File file_;
  std::string name_;
  PcapFormat format_;
  bool kept_ = false;
};

}  // namespace spinloom::port
