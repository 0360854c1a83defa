#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "storage/tokenizer/tokenizer.h"
#include "storage/tokenizer/words.h"

namespace troupe::storage {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;
constexpr std::int64_t most_trained = std::int64_t{1} << 20;
/// Merging a pair that occurs once saves nothing.
constexpr std::int64_t least_count = 2;

/// Longer words are counted in pieces, because every merge walks through the words that contain it.
constexpr std::size_t longest_word = 256;

struct Word {
  std::vector<std::int32_t> symbols;
  std::int64_t count;
};

/// A pair with its count at the time of queueing. Highest count first, then lowest ids.
struct Frequent {
  std::int64_t count;
  Pair pair;

  friend bool operator<(const Frequent& a, const Frequent& b) {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }
};

/// A loop that merges the most frequent pair of neighbours. It updates counts with each merge, so
/// that it visits only words that contain the pair.
class Trainer {
 public:
  Trainer(std::string_view text, const std::vector<std::int32_t>& byte_ids) {
    std::map<std::string_view, std::int64_t> counts;
    while (!text.empty()) {
      const auto word = first_word(text).substr(0, longest_word);
      ++counts[word];
      text.remove_prefix(word.size());
    }
    for (const auto& [word, count] : counts) {
      words_.push_back({{}, count});
      for (const char byte : word)
        words_.back().symbols.push_back(byte_ids[static_cast<unsigned char>(byte)]);
      count_pairs(words_.size() - 1);
    }
    for (const auto& [pair, entry] : pairs_) queue_.push({entry.count, pair});
  }

  /// Returns the pair to merge next, or nothing if no pair is frequent enough.
  std::optional<Pair> most_frequent() {
    while (!queue_.empty()) {
      const auto top = queue_.top();
      queue_.pop();
      const auto now = pairs_[top.pair].count;
      if (now == top.count && now >= least_count) return top.pair;
      // Queue it again with its present, lower count.
      if (now != top.count && now >= least_count) queue_.push({now, top.pair});
    }
    return {};
  }

  void merge(const Pair& pair, std::int32_t merged) {
    auto holders = std::move(pairs_[pair].words);
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
    for (const auto index : holders) {
      auto& word = words_[index];
      for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i)
        pairs_[{word.symbols[i], word.symbols[i + 1]}].count -= word.count;
      std::vector<std::int32_t> symbols;
      for (std::size_t i = 0; i < word.symbols.size(); ++i) {
        const bool found =
            i + 1 < word.symbols.size() && Pair{word.symbols[i], word.symbols[i + 1]} == pair;
        symbols.push_back(found ? merged : word.symbols[i]);
        i += found ? 1 : 0;
      }
      word.symbols = std::move(symbols);
      count_pairs(index);
      for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i) {
        const Pair made{word.symbols[i], word.symbols[i + 1]};
        if (made.first == merged || made.second == merged) queue_.push({pairs_[made].count, made});
      }
    }
  }

 private:
  struct Entry {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  // Words that contain the pair or once did. May repeat.
  };

  void count_pairs(std::size_t index) {
    const auto& word = words_[index];
    for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      auto& entry = pairs_[{word.symbols[i], word.symbols[i + 1]}];
      entry.count += word.count;
      if (entry.words.empty() || entry.words.back() != index) entry.words.push_back(index);
    }
  }

  std::vector<Word> words_;
  std::map<Pair, Entry> pairs_;
  std::priority_queue<Frequent> queue_;
};

}  // namespace

Result<Tokenizer> train_tokenizer(std::string_view text, std::int64_t vocabulary) {
  constexpr std::int64_t least = 257;
  if (vocabulary < least || vocabulary > most_trained)
    return Error{"a vocabulary of " + std::to_string(vocabulary) + " tokens cannot be trained; " +
                 std::to_string(least) + " to " + std::to_string(most_trained) + " can"};
  std::vector<std::pair<char32_t, unsigned char>> bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes.emplace_back(printable(static_cast<unsigned char>(byte)),
                       static_cast<unsigned char>(byte));
  // GPT-2 sorts bytes by their printable characters.
  std::sort(bytes.begin(), bytes.end());
  std::vector<std::string> tokens;
  std::vector<std::int32_t> byte_ids(256);
  for (const auto& [character, byte] : bytes) {
    byte_ids[byte] = static_cast<std::int32_t>(tokens.size());
    tokens.push_back(to_printable(std::string(1, static_cast<char>(byte))));
  }

  Value::List merges;
  std::map<std::string, std::int32_t> ids;
  Trainer trainer(text, byte_ids);
  while (static_cast<std::int64_t>(tokens.size()) < vocabulary - 1) {
    const auto pair = trainer.most_frequent();
    if (!pair) break;
    const auto& left = tokens[static_cast<std::size_t>(pair->first)];
    const auto& right = tokens[static_cast<std::size_t>(pair->second)];
    merges.emplace_back(left + " " + right);
    // If another pair gave the same bytes before, this merge leads to the same token.
    const auto next = static_cast<std::int32_t>(tokens.size());
    const auto [known, is_new] = ids.emplace(left + right, next);
    if (is_new) tokens.push_back(known->first);
    trainer.merge(*pair, known->second);
  }
  AddedToken end;
  end.text = "<|endoftext|>";
  end.id = static_cast<std::int32_t>(tokens.size());
  tokens.push_back(end.text);
  Value::Map words;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    words.push_back({tokens[id], static_cast<std::int64_t>(id), {}});
  return Tokenizer::read(byte_level_json(std::move(words), std::move(merges), {end}));
}

}  // namespace troupe::storage
