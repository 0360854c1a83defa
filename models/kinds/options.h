#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/kinds/option.h"

namespace troupe::models {

/// The keys of a complete table of options: each is there and of its type.
std::int64_t integer(const Value& options, std::string_view key);
double number(const Value& options, std::string_view key);
bool boolean(const Value& options, std::string_view key);
std::vector<std::int64_t> integers(const Value& options, std::string_view key);

/// An error unless the one key divides the other, with the nearest numbers that do.
Status check_divides(const Value& options, std::string_view divisor, std::string_view number);

/// Rows that several kinds of models have.
namespace option {

Option vocab();
Option context();
Option width();
Option layers();
Option heads();
Option classes();
Option channels();
/// `where` completes "The share of numbers that are set to zero in training ...".
Option dropout(std::string_view help);

}  // namespace option
}  // namespace troupe::models
