-- Wireshark's view of SLMP, the sPIN lightweight messaging protocol: UDP port 9330, ten bytes of header.
--
--   tshark -X lua_script:slmp.lua -r FILE.pcap -Y slmp
--   wireshark -X lua_script:slmp.lua FILE.pcap       (or put this file into Wireshark's folder for plugins)
--
-- Fields: slmp.flags.syn, slmp.flags.ack, slmp.flags.eom, slmp.message, slmp.offset, slmp.length; slmp.acknowledges is the
-- frame that an acknowledgement answers, slmp.round_trip the time since then, slmp.repeats the frame that a packet repeats.
-- slmp.flags.report asks for a report of the receiver's room, or marks one; slmp.room is that room, in packets.
local slmp = Proto("slmp", "sPIN Lightweight Messaging Protocol")

local HEADER_BYTES = 10
local PORT = 9330
local PAYLOAD_BYTES_MAX = 1462
local REPORT_BYTES = 4
local EOM, SYN, ACK, REPORT = 0x8000, 0x4000, 0x2000, 0x1000
local RESERVED = 0x0fff
local NAMES = { { SYN, "SYN" }, { ACK, "ACK" }, { EOM, "EOM" }, { REPORT, "REPORT" } }

local fields = {
  flags = ProtoField.uint16("slmp.flags", "Flags", base.HEX),
  eom = ProtoField.bool("slmp.flags.eom", "EOM, the last packet of its message", 16, nil, EOM),
  syn = ProtoField.bool("slmp.flags.syn", "SYN, to be acknowledged", 16, nil, SYN),
  ack = ProtoField.bool("slmp.flags.ack", "ACK, an acknowledgement", 16, nil, ACK),
  report = ProtoField.bool("slmp.flags.report", "REPORT of the receiver's room", 16, nil, REPORT),
  reserved = ProtoField.uint16("slmp.flags.reserved", "Reserved", base.HEX, nil, RESERVED),
  message = ProtoField.uint32("slmp.message", "Message ID", base.DEC),
  offset = ProtoField.uint32("slmp.offset", "Offset in the message", base.DEC),
  length = ProtoField.uint32("slmp.length", "Payload bytes", base.DEC),
  payload = ProtoField.bytes("slmp.payload", "Payload"),
  room = ProtoField.uint32("slmp.room", "Room, in packets", base.DEC),
  acknowledges = ProtoField.framenum("slmp.acknowledges", "Acknowledges", base.NONE, frametype.ACK),
  round_trip = ProtoField.double("slmp.round_trip", "Seconds since that packet"),
  repeats = ProtoField.framenum("slmp.repeats", "Repeats", base.NONE, frametype.RETRANS_PREV),
}
local remarks = {
  reserved = ProtoExpert.new("slmp.wrong.reserved", "A reserved flag is set", expert.group.PROTOCOL, expert.severity.WARN),
  flags = ProtoExpert.new("slmp.wrong.flags", "ACK with SYN or EOM, or REPORT without ACK or SYN", expert.group.PROTOCOL, expert.severity.WARN),
  payload = ProtoExpert.new("slmp.wrong.payload", "ACK with a payload that is no report", expert.group.PROTOCOL, expert.severity.WARN),
  together = ProtoExpert.new("slmp.together", "Several packets, which are cut after this capture", expert.group.COMMENTS_GROUP,
    expert.severity.NOTE),
  short = ProtoExpert.new("slmp.wrong.short", "Shorter than a header", expert.group.MALFORMED, expert.severity.ERROR),
}
slmp.fields = fields
slmp.experts = remarks

-- What the first pass has found, by frame; packets by peers, message and offset.
local sent, answered, repeated

function slmp.init()
  sent, answered, repeated = {}, {}, {}
end

local function names_of(flags)
  local found = {}
  for _, pair in ipairs(NAMES) do
    if bit.band(flags, pair[1]) ~= 0 then found[#found + 1] = pair[2] end
  end
  return table.concat(found, " ")
end

local function key(source, source_port, target, target_port, message, offset)
  return table.concat({ tostring(source), source_port, tostring(target), target_port, message, offset }, " ")
end

local function learn(pinfo, flags, message, offset)
  if bit.band(flags, ACK) ~= 0 then
    answered[pinfo.number] = sent[key(pinfo.dst, pinfo.dst_port, pinfo.src, pinfo.src_port, message, offset)]
    return
  end
  local name = key(pinfo.src, pinfo.src_port, pinfo.dst, pinfo.dst_port, message, offset)
  repeated[pinfo.number] = sent[name]
  sent[name] = { frame = pinfo.number, time = pinfo.abs_ts }
end

function slmp.dissector(buffer, pinfo, tree)
  pinfo.cols.protocol = "SLMP"
  local size = buffer:reported_len()
  local branch = tree:add(slmp, buffer())
  if buffer:len() < HEADER_BYTES then
    branch:add_proto_expert_info(remarks.short)
    return buffer:len()
  end
  local flags, message, offset = buffer(0, 2):uint(), buffer(2, 4):uint(), buffer(6, 4):uint()
  local length = size - HEADER_BYTES
  if not pinfo.visited then learn(pinfo, flags, message, offset) end

  local bits = branch:add(fields.flags, buffer(0, 2))
  bits:append_text(" " .. names_of(flags))
  for _, name in ipairs({ "eom", "syn", "ack", "report", "reserved" }) do bits:add(fields[name], buffer(0, 2)) end
  branch:add(fields.message, buffer(2, 4))
  branch:add(fields.offset, buffer(6, 4))
  branch:add(fields.length, length):set_generated()
  local reports = bit.band(flags, ACK + REPORT) == ACK + REPORT and buffer:len() == HEADER_BYTES + REPORT_BYTES
  if reports then
    branch:add(fields.room, buffer(HEADER_BYTES))
  elseif buffer:len() > HEADER_BYTES then
    branch:add(fields.payload, buffer(HEADER_BYTES))
  end

  if bit.band(flags, RESERVED) ~= 0 then bits:add_proto_expert_info(remarks.reserved) end
  local acknowledges = bit.band(flags, ACK) ~= 0
  if acknowledges and bit.band(flags, SYN + EOM) ~= 0 or bit.band(flags, ACK + SYN + REPORT) == REPORT then
    bits:add_proto_expert_info(remarks.flags)
  end
  if acknowledges and not reports and (length > 0 or bit.band(flags, REPORT) ~= 0) then
    branch:add_proto_expert_info(remarks.payload)
  end

  if length > PAYLOAD_BYTES_MAX then branch:add_proto_expert_info(remarks.together) end

  local info = string.format("%s message %u offset %u", names_of(flags), message, offset)
  local packet = answered[pinfo.number]
  if packet then
    branch:add(fields.acknowledges, packet.frame):set_generated()
    branch:add(fields.round_trip, pinfo.abs_ts - packet.time):set_generated()
  end
  local earlier = repeated[pinfo.number]
  if earlier then
    branch:add(fields.repeats, earlier.frame):set_generated()
    info = info .. " again"
  end
  if not acknowledges then info = info .. " length " .. length end
  if reports then info = info .. " room " .. buffer(HEADER_BYTES):uint() end
  pinfo.cols.info = info:gsub("^ ", "")
  return buffer:len()
end

DissectorTable.get("udp.port"):add(PORT, slmp)
