// BindingsHeaders - what most bindings include, read once for all of them (cmake/floors.cmake).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "app/python/bindings_support.hpp"
#include "app/python/python_text.hpp"
