#include "sweep/shortcuts.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace powermeans {
namespace {

bool shortcuts_wanted() {
    const char* wanted = std::getenv("POWERMEANS_SHORTCUTS");
    const std::string value = wanted ? wanted : "1";
    if (value != "0" && value != "1")
        throw std::runtime_error("POWERMEANS_SHORTCUTS=" + value + " must be 0 or 1: correct or unset it");
    return value == "1";
}

std::atomic<bool>& shortcuts() {
    static std::atomic<bool> taken(shortcuts_wanted());
    return taken;
}

}  // namespace

bool takes_shortcuts() { return shortcuts(); }

void take_shortcuts(bool taken) { shortcuts() = taken; }

}  // namespace powermeans
