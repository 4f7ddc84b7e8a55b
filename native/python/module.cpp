// The Python module. No folder but this one knows Python.
#include "python/module.hpp"

#include "dispatch.hpp"
#include "sweep/shortcuts.hpp"

NB_MODULE(_native, module) {
    using namespace powermeans;
    module.doc() = "Sweeps over points in memory, compiled.";
    // A program may end with rows in a global variable or in a traceback: that is no leak.
    nanobind::set_leak_warnings(false);
    // A wrong environment variable fails at import, not in the first sweep.
    chosen_instruction_set();
    takes_shortcuts();
    bind_classes(module);
    bind_functions(module);
}
