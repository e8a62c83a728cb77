// File wire - a port of capture files: what comes stands in one before, what goes is read from another at the end.
//
// Contract: file_wire(text_of, coming) writes `coming` to a file and opens text_of(in, out).
// Threads: one. Time: none.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/testing/folder.hpp"
#include "ethernet/port/open.hpp"
#include "ethernet/port/pcap_file.hpp"
#include "ethernet/port/testing/port_ways.hpp"

namespace spinloom::port::test {

class FileWire final : public Wire {
 public:
  FileWire(std::filesystem::path folder, PortPointer port) : folder_(std::move(folder)), port_(std::move(port)) {}
  ~FileWire() override {
    port_.reset();
    std::filesystem::remove_all(folder_);
  }
  FramePort& port() override { return *port_; }
  Status give(std::span<const FrameBytes>) override { return {}; }
  Result<Frames> taken(size_t) override {
    port_.reset();
    SPL_ASSIGN(auto written, open_port("pcap:" + (folder_ / "out.pcap").string()));
    Frames out;
    std::vector<Bytes> batch(7);
    while (!written->ended()) {
      SPL_ASSIGN(const size_t came, written->receive(batch));
      for (const Bytes frame : std::span(batch).first(came)) out.emplace_back(frame.begin(), frame.end());
    }
    return out;
  }

 private:
  std::filesystem::path folder_;
  PortPointer port_;
};

template <class TextOf>
Result<std::unique_ptr<Wire>> file_wire(TextOf text_of, const Frames& coming) {
  std::string name = (std::filesystem::temp_directory_path() / "spinloom-port-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(name.data());
  {
    SPL_ASSIGN(PcapWriter writer, PcapWriter::create((folder / "in.pcap").string()));
    for (const FrameBytes& frame : coming) SPL_TRY(writer.append(frame, 1'700'000'000'123'456'000));
    SPL_TRY(writer.flush());
  }
  SPL_ASSIGN(PortPointer port, open_port(text_of((folder / "in.pcap").string(), (folder / "out.pcap").string())));
  return std::unique_ptr<Wire>(std::make_unique<FileWire>(folder, std::move(port)));
}

}  // namespace spinloom::port::test
