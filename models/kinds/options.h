#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/description/option.h"

namespace troupe::models {

/// Reads a key of a complete table. A missing key or one of another type is a programming error.
std::int64_t integer(const Value& options, std::string_view key);
double number(const Value& options, std::string_view key);
bool boolean(const Value& options, std::string_view key);
std::vector<std::int64_t> integers(const Value& options, std::string_view key);

/// Returns an error that names the nearest valid numbers unless the one key divides the other.
Status check_divides(const Value& options, std::string_view divisor, std::string_view number);

/// Options that several kinds of models share.
namespace option {

Option vocab();
Option context();
Option width();
Option layers();
Option heads();
Option classes();
Option channels();
/// `help` is the whole sentence: "The share of numbers set to zero in training, ...".
Option dropout(std::string_view help);

}  // namespace option
}  // namespace troupe::models
