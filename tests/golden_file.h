#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "catch.h"

/// Compares a text with a file of the repository. If they differ, writes the text to NAME.new
/// beside it.
inline void check_golden(const std::string& path, const std::string& text) {
  std::ifstream file(path);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  const bool is_golden = text == golden;
  INFO("compare " << path << " with what lies beside it as .new");
  CHECK(is_golden);
  if (!is_golden) std::ofstream(path + ".new") << text;
}
