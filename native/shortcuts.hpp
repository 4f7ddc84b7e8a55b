// What only tests, measurements and debugging call: whether sweeps may leave out work that cannot change
// their result. They leave out points that keep their center, centers too far from a group of points, and
// weights beyond the digits.
#pragma once

namespace powermeans {

// POWERMEANS_SHORTCUTS, 0 or 1, decides at the start; throws if it is anything else.
bool takes_shortcuts();
void take_shortcuts(bool taken);

}  // namespace powermeans
