#include "made_parcel.h"

#include <algorithm>
#include <cstring>

#include "core/random.h"

namespace troupe::transport {
namespace {

/// A stream of random words that follow from seed and index.
class Words {
 public:
  Words(std::uint64_t seed, std::uint64_t index) : key_{.seed = seed ^ (index << 20)} {}

  std::uint32_t next() {
    if (used_ == 4) {
      words_ = key_.words(block_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  std::int64_t below(std::int64_t limit) { return limit <= 0 ? 0 : next() % limit; }

 private:
  RandomKey key_;
  std::uint32_t block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  std::size_t used_ = 4;
};

struct Form {
  Shape shape;
  DType type = DType::f32;
  bool lent = false;
  std::uint32_t first_word = 0;
};

struct Forms {
  std::vector<std::byte> head;
  std::vector<Form> tensors;
};

Forms forms_of(std::uint64_t seed, std::uint64_t index, const ParcelSizes& sizes) {
  Words words(seed, index);
  Forms forms;
  forms.head.resize(
      static_cast<std::size_t>(words.below(16) == 0 ? words.below(20'000) : words.below(200)));
  for (auto& byte : forms.head) byte = static_cast<std::byte>(words.next());
  const bool many = words.below(50) == 0;
  const auto count = many ? 100 + words.below(300) : words.below(sizes.most_tensors + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    Form form;
    form.type = static_cast<DType>(words.below(8));
    form.lent = words.below(3) != 0;
    const auto rank = words.below(Shape::max_rank + 1);
    std::int64_t left = 1 + words.below(many ? 40 : sizes.most_elements);
    for (std::int64_t d = 0; d < rank; ++d) {
      const auto size = d + 1 == rank ? left : 1 + words.below(std::min<std::int64_t>(left, 9));
      form.shape.append(words.below(40) == 0 ? 0 : size);
      left = std::max<std::int64_t>(1, left / size);
    }
    form.first_word = words.next();
    forms.tensors.push_back(form);
  }
  return forms;
}

/// Returns bytes from which tensors copy a range at a random offset.
const std::vector<std::byte>& source() {
  static const auto bytes = [] {
    std::vector<std::byte> made(std::size_t{256} << 10);
    Words words(77, 0);
    for (auto& byte : made) byte = static_cast<std::byte>(words.next() >> 9);
    return made;
  }();
  return bytes;
}

std::span<const std::byte> bytes_of(const Form& form, std::size_t count) {
  const auto first = form.first_word % (source().size() - count);
  return std::span(source()).subspan(first, count);
}

}  // namespace

MadeParcel made_parcel(std::uint64_t seed, std::uint64_t index, const ParcelSizes& sizes,
                       Sender& sender, MemoryPool& pool) {
  auto forms = forms_of(seed, index, sizes);
  MadeParcel made{std::move(forms.head), {}};
  for (const auto& form : forms.tensors) {
    Tensor tensor =
        form.lent ? sender.lend(form.shape, form.type) : Tensor::make(pool, form.shape, form.type);
    std::memcpy(tensor.raw(), bytes_of(form, tensor.bytes()).data(), tensor.bytes());
    made.tensors.push_back(std::move(tensor));
  }
  return made;
}

std::string difference(const Parcel& parcel, std::uint64_t seed, std::uint64_t index,
                       const ParcelSizes& sizes) {
  const auto wanted = forms_of(seed, index, sizes);
  const std::string place = "parcel " + std::to_string(index);
  if (!std::ranges::equal(parcel.head, wanted.head)) return place + " has another head";
  if (parcel.tensors.size() != wanted.tensors.size())
    return place + " has " + std::to_string(parcel.tensors.size()) + " tensors";
  for (std::size_t t = 0; t < wanted.tensors.size(); ++t) {
    const auto& tensor = parcel.tensors[t];
    const auto& form = wanted.tensors[t];
    if (!(tensor.shape() == form.shape) || tensor.dtype() != form.type)
      return place + " has a tensor of another form: " + to_string(tensor.shape());
    if (std::memcmp(tensor.raw(), bytes_of(form, tensor.bytes()).data(), tensor.bytes()) != 0)
      return place + ", tensor " + std::to_string(t) + " has other numbers";
  }
  return {};
}

}  // namespace troupe::transport
