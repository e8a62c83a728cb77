// Control - the answer of a NIC to a request of a tool; a program with a socket needs no more than this.
//
// Contract: answer() carries a request out and returns the answer's bytes, for any bytes: those that are no request get
//   an answer that says what is wrong. Memory is refused while cl/ctrl/1 holds the NIC in reset, outside of handler and
//   program memory, and at addresses that are no multiples of 4. Reading cl/fifo by its address takes a character, too.
// Threads: the register file's. Time: none. Work: at most words_max words or entries_max entries.
#pragma once

#include "nic/registers/control_format.hpp"
#include "nic/registers/register_file.hpp"

namespace spinloom::registers {

// Returns the path at which tools look for a NIC of this name: in the folder for sockets (base/private_folder.hpp).
[[nodiscard]] std::string control_socket_path(std::string_view nic, std::string_view folder);

[[nodiscard]] std::vector<uint8_t> answer(RegisterFile& registers, NicMemory& memory, std::span<const uint8_t> request);

}  // namespace spinloom::registers
