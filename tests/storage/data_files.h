#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catch.h"
#include "storage/data/dataset.h"
#include "storage/files/files.h"

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline void put(troupe::storage::Files& files, const std::string& path, std::string_view text) {
  REQUIRE(troupe::storage::write_new_file(files, path, {as_bytes(text)}));
}

/// A sample with inputs of type Input and integer targets.
template <class Input>
struct Sample {
  std::vector<Input> input;
  std::vector<std::int32_t> target;

  friend bool operator==(const Sample&, const Sample&) = default;
};

template <class Input>
Sample<Input> sample(const troupe::storage::Dataset& dataset, std::int64_t index) {
  const auto& shape = dataset.shape();
  REQUIRE(shape.input_type == troupe::dtype_of<Input>);
  REQUIRE(shape.target_type == troupe::DType::i32);
  Sample<Input> read;
  read.input.resize(static_cast<std::size_t>(shape.input.count()));
  read.target.resize(static_cast<std::size_t>(shape.target.count()));
  REQUIRE(dataset.read({.sample = index}, {{std::as_writable_bytes(std::span(read.input))},
                                           std::as_writable_bytes(std::span(read.target))}));
  return read;
}
