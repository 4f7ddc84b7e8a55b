// By what the cost of a cluster is measured, from which points move.
#pragma once

namespace powermeans {

enum class MovedBy { squared_euclidean, poisson, gamma, cosine };

}  // namespace powermeans
