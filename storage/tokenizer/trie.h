#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::storage {

/// A tree of words by their bytes. Each word has a value of at least 0.
class Trie {
 public:
  using Node = std::int32_t;
  static constexpr Node root = 0;
  static constexpr std::int32_t none = -1;

  Trie() : Trie(std::vector<std::pair<std::string, std::int32_t>>()) {}
  /// The words are not empty, and no word occurs twice.
  explicit Trie(std::vector<std::pair<std::string, std::int32_t>> words);

  /// Returns the node behind a byte, or none.
  Node child(Node node, char byte) const;
  /// Returns the node behind some bytes, or none.
  Node walk(Node node, std::string_view bytes) const;
  /// Returns the value of the word that ends in a node, or none.
  std::int32_t value(Node node) const { return values_[static_cast<std::size_t>(node)]; }

  /// The longest word at the beginning of a text.
  struct Match {
    std::size_t bytes = 0;  // 0: there is none.
    std::int32_t value = none;
  };
  Match longest(std::string_view text, Node from = root) const;

 private:
  // The children of a node lie side by side, sorted by their byte, from first_[node] on.
  std::vector<Node> first_;
  std::vector<unsigned char> bytes_;
  std::vector<std::int32_t> values_;
  std::array<Node, 256> of_root_;
};

}  // namespace troupe::storage
