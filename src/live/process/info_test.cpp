// The text of spinloom-info: ranges of ranks, tables, and rows that follow the settings.
#include "live/process/info.hpp"

#include <gtest/gtest.h>

namespace spinloom::process {
namespace {

TEST(Info, ranks_are_written_as_ranges) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({7}), "7");
  EXPECT_EQ(ranges({0, 1, 2, 3, 5, 7, 8}), "0-3, 5, 7-8");
}

TEST(Info, a_table_has_its_values_below_each_other) {
  EXPECT_EQ(table({{"a", "one"}, {"long", "two"}}), "a     one\nlong  two\n");
}

TEST(Info, every_variable_has_a_row_with_its_value) {
  setenv("SPINLOOM_HPUS", "3", 1);
  const std::vector<Row> rows = variable_rows();
  unsetenv("SPINLOOM_HPUS");
  ASSERT_EQ(rows.size(), variables().size());
  for (const Row& row : rows) {
    const bool set = row.name == "SPINLOOM_HPUS";
    if (set || std::getenv(row.name.c_str()) == nullptr) {
      EXPECT_EQ(row.value.find("= 3;") == 0, set) << row.value;
    }
  }
}

TEST(Info, the_machine_s_rows_follow_the_settings) {
  Settings settings;
  settings.copy = live::CopyMode::twice;
  settings.transport = TransportChoice::shm;
  const std::string shown = table(machine_rows(settings));
  EXPECT_NE(shown.find("two copies: SPINLOOM_COPY=two-copy"), std::string::npos) << shown;
  EXPECT_NE(shown.find("not used: SPINLOOM_TRANSPORT=shm"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("in place"), std::string::npos) << shown;
  settings.copy = live::CopyMode::automatic;
  EXPECT_NE(table(machine_rows(settings)).find("one copy, in place, between ranks of one process"), std::string::npos);
}

TEST(Info, networks_and_forwarding_follow_the_settings) {
  Settings settings;
  const std::string alone = table(machine_rows(settings));
  EXPECT_NE(alone.find("this rank does not forward"), std::string::npos) << alone;
  settings.udp_networks = {{0x7f000001, 8}, {0xcb007100, 24}};
  settings.udp_address = 0x7f000001;
  settings.gateway = live::Gateway::beside;
  const std::string shown = table(machine_rows(settings));
  EXPECT_NE(shown.find("bound to 127.0.0.1, datagrams of up to"), std::string::npos) << shown;
  EXPECT_NE(shown.find("; no interface that is up has the address 203.0.113.0"), std::string::npos) << shown;
  EXPECT_NE(shown.find("pieces as they come"), std::string::npos) << shown;
}

TEST(Info, how_packets_go_between_machines_follows_the_settings) {
  Settings settings;
  settings.transport = TransportChoice::udp;
  EXPECT_NE(table(machine_rows(settings)).find("by UDP: SPINLOOM_TRANSPORT=udp"), std::string::npos);
  settings.transport = TransportChoice::automatic;
  settings.fabric.kind = live::FabricWish::Kind::none;
  EXPECT_NE(table(machine_rows(settings)).find("by UDP: SPINLOOM_FABRIC=none"), std::string::npos);
  settings.fabric = {live::FabricWish::Kind::named, "nosuch", ""};
  const std::string shown = table(machine_rows(settings));
  EXPECT_NE(shown.find("between machines"), std::string::npos) << shown;
  EXPECT_NE(shown.find("by UDP: lib"), std::string::npos) << shown;
}

}  // namespace
}  // namespace spinloom::process
