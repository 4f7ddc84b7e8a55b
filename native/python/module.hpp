// What the Python module is made of.
#pragma once

#include <nanobind/nanobind.h>

namespace powermeans {

void bind_classes(nanobind::module_& module);
void bind_functions(nanobind::module_& module);

}  // namespace powermeans
