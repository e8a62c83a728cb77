// What tests include beside the standard headers.
#pragma once

#include <gtest/gtest.h>
