// A switch for tests, benchmarks and debugging: whether sweeps may leave out work that cannot change their
// result. They leave out points that keep their center, centers too far from a group, and negligible weights.
#pragma once

namespace powermeans {

// At first POWERMEANS_SHORTCUTS decides, 0 or 1; throws if it is anything else.
bool takes_shortcuts();
void take_shortcuts(bool taken);

}  // namespace powermeans
