#include "ethernet/port/pcap_file.hpp"

#include <cerrno>
#include <cstring>

#include "ethernet/port/finish_checksum.hpp"

namespace spinloom::port {

namespace {

constexpr size_t buffer_bytes = pcap_record_bytes_max;  // holds any record, or more than 150 frames of 1514 bytes

}  // namespace

Result<PcapReader> PcapReader::open(const std::string& path) {
  File file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return fail(Code::invalid, "cannot read ", path, ": ", std::strerror(errno));
  return open(std::move(file), path);
}

Result<PcapReader> PcapReader::open(File file, std::string name) {
  PcapHeaderBytes bytes{};
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    return fail(Code::invalid, name, " is no pcap file: it has fewer than the ", bytes.size(), " bytes of a header");
  }
  SPL_ASSIGN(const PcapFormat format, read_pcap_header(bytes, name));
  PcapReader reader(std::move(file), std::move(name), format);
  SPL_ASSIGN(reader.has_record_, reader.next());
  return reader;
}

PcapReader::PcapReader(File file, std::string name, PcapFormat format)
    : file_(std::move(file)),
      name_(std::move(name)),
      format_(format),
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(buffer_bytes)) {}

// Reads the next record's header. Returns false at the end of the file.
Result<bool> PcapReader::next() {
  PcapRecordBytes bytes{};
  const size_t count = std::fread(bytes.data(), 1, bytes.size(), file_.get());
  if (count == 0 && std::feof(file_.get()) != 0) {
    ended_ = true;
    return false;
  }
  if (count != bytes.size()) return ends_within("header").error();
  SPL_ASSIGN(record_, read_pcap_record(format_, bytes, name_));
  return true;
}

Status PcapReader::ends_within(const char* what) const {
  return fail(Code::invalid, name_, " ends within the ", what, " of its record ", records_ + 1,
              ": it was cut off; its first ", records_, " records are good (editcap -r keeps them)");
}

Result<size_t> PcapReader::read(std::span<packet::Bytes> batch, BatchTimes times) {
  size_t count = 0;
  size_t used = 0;
  while (has_record_ && count < batch.size() && used + record_.captured_bytes <= buffer_bytes) {
    if (times == BatchTimes::same && count > 0 && record_.time_ns != time_ns_) break;
    uint8_t* const at = buffer_.get() + used;
    if (std::fread(at, 1, record_.captured_bytes, file_.get()) != record_.captured_bytes) {
      return ends_within("bytes").error();
    }
    ++records_;
    time_ns_ = record_.time_ns;
    if (record_.captured_bytes < record_.original_bytes || record_.captured_bytes < format_.check_bytes) {
      ++truncated_records_;
    } else {
      const std::span<uint8_t> frame(at, record_.captured_bytes - format_.check_bytes);
      finish_if_offloaded(frame);
      batch[count++] = frame;
      used += record_.captured_bytes;
    }
    SPL_ASSIGN(has_record_, next());
  }
  return count;
}

Result<PcapWriter> PcapWriter::create(const std::string& path, const PcapFormat& format) {
  File file(std::fopen(path.c_str(), "wbxe"));
  if (file == nullptr) {
    return errno == EEXIST
               ? fail(Code::invalid, path, " exists and is not written over: remove it, or name another file")
               : fail(Code::invalid, "cannot write ", path, ": ", std::strerror(errno));
  }
  PcapWriter writer(std::move(file), path, format);
  const auto bytes = write_pcap_header(format);
  if (std::fwrite(bytes.data(), 1, bytes.size(), writer.file_.get()) != bytes.size() ||
      std::fflush(writer.file_.get()) != 0) {
    return writer.not_written().error();
  }
  return writer;
}

Status PcapWriter::append(packet::Bytes frame, int64_t time_ns) {
  keep();
  const auto length = static_cast<uint32_t>(frame.size());
  const auto bytes = write_pcap_record(format_, {time_ns, length, length});
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
      std::fwrite(frame.data(), 1, frame.size(), file_.get()) != frame.size()) {
    return not_written();
  }
  return {};
}

Status PcapWriter::flush() {
  keep();
  return std::fflush(file_.get()) == 0 ? Status() : not_written();
}

Status PcapWriter::not_written() const {
  return fail(Code::environment, "cannot write ", name_, ": ", std::strerror(errno));
}

}  // namespace spinloom::port
