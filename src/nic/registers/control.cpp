#include "nic/registers/control.hpp"

#include <algorithm>
#include <sstream>

namespace spinloom::registers {
namespace {

Status may_reach(const RegisterFile& registers, uint64_t address, size_t words) {
  if (registers.configuration().reset) {
    return fail(Code::invalid, "NIC memory cannot be reached while cl/ctrl/1 is 1: processors are held in reset");
  }
  if (address % 4 != 0 || !registers.map().in_memory(address, words * 8)) {
    std::ostringstream message;
    message << words * 8 << " bytes at 0x" << std::hex << address << " are not in NIC memory, which is";
    const Shape& shape = registers.map().shape();
    message << " 0x" << shape.handler_memory_bytes << " bytes at 0x" << memory_windows[0].nic_address << " and 0x"
            << shape.program_memory_bytes << " at 0x" << memory_windows[1].nic_address;
    return fail(Code::invalid, message.str(), "; addresses are multiples of 4");
  }
  return {};
}

Entry entry_of(const RegisterFile& registers, RegisterInstance place) {
  const Map& map = registers.map();
  const Description& description = describe(place.id);
  return {map.address(place),
          registers.peek(place),
          description.reset,
          description.guard == no_register ? no_guard : map.address({description.guard, 0}),
          static_cast<uint8_t>(description.access),
          static_cast<uint8_t>(description.width),
          map.path(place)};
}

Status carry_out(RegisterFile& registers, NicMemory& memory, const Request& request, Answer& answer) {
  const Map& map = registers.map();
  switch (request.kind) {
    case RequestKind::read_registers: {
      if (request.address > UINT32_MAX) {
        return fail(Code::invalid, "no register at address ", request.address);
      }
      SPL_ASSIGN(const RegisterInstance first, map.at(static_cast<uint32_t>(request.address)));
      const uint32_t number = map.number(first);
      if (request.count > map.register_count() - number) {
        return fail(Code::invalid, request.count, " registers from ", map.path(first), " on; there are ",
                    map.register_count() - number);
      }
      for (uint32_t i = 0; i < request.count; ++i) {
        answer.words.push_back(registers.read(map.place_of_number(number + i)));
      }
      return {};
    }
    case RequestKind::write_register:
      if (request.address > UINT32_MAX || request.words[0] > UINT32_MAX) {
        return fail(Code::invalid, "address ", request.address, ", value ", request.words[0],
                    ": registers and their addresses have 32 bits");
      }
      return registers.write(static_cast<uint32_t>(request.address), static_cast<uint32_t>(request.words[0]));
    case RequestKind::read_memory:
      SPL_TRY(may_reach(registers, request.address, request.count));
      answer.words.resize(request.count);
      return memory.read(request.address, answer.words);
    case RequestKind::write_memory:
      SPL_TRY(may_reach(registers, request.address, request.words.size()));
      return memory.write(request.address, request.words);
    case RequestKind::pop_stdout:
      for (uint32_t i = 0; i < request.count; ++i) {
        const uint32_t word = registers.read(RegisterInstance{Register::cl_fifo, 0});
        if (word == stdout_empty) break;
        answer.words.push_back(word);
      }
      return {};
    case RequestKind::list_registers: {
      const uint64_t all = map.register_count();
      const uint64_t first = std::min<uint64_t>(request.address, all);
      const uint64_t end = std::min<uint64_t>(first + request.count, all);
      for (uint64_t i = first; i < end; ++i) {
        answer.entries.push_back(entry_of(registers, map.place_of_number(static_cast<uint32_t>(i))));
      }
      return {};
    }
    case RequestKind::status: answer.text = registers.status_text().substr(0, text_bytes_max); return {};
  }
  return {};
}

}  // namespace

std::string control_socket_path(std::string_view nic, std::string_view folder) {
  return text(folder, "/spinloom-", nic, ".control");
}

std::vector<uint8_t> answer(RegisterFile& registers, NicMemory& memory, std::span<const uint8_t> request) {
  Answer answer;
  const auto decoded = decode_request(request);
  Status done = decoded.ok() ? Status{} : decoded.error();
  if (decoded.ok()) {
    answer.kind = decoded->kind;
    done = carry_out(registers, memory, *decoded, answer);
  }
  if (!done.ok()) answer = {answer.kind, false, done.error().code, {}, {}, done.error().message};
  return encode(answer);
}

}  // namespace spinloom::registers
