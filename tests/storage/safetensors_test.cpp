#include "storage/files/safetensors.h"

#include <cstring>

#include "catch.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

/// Returns a file with this header and `data` bytes 0, 1, 2, ...
std::string file_with(const std::string& header, std::size_t data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  file += header;
  for (std::size_t i = 0; i < data; ++i) file += static_cast<char>(i);
  return file;
}

std::string complaint_of(const std::string& file) {
  const auto parsed = Safetensors::parse(Bytes::copy_of(file));
  return parsed ? "none" : parsed.error().text;
}

const std::string two = R"({"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"BF16","shape":[1,3],"data_offsets":[8,14]}})";

}  // namespace

TEST_CASE("a file lists its tensors with names, types, shapes and bytes", "[storage]") {
  const auto file = Safetensors::parse(Bytes::copy_of(file_with(two, 14)));
  REQUIRE(file);
  REQUIRE(file->tensors().size() == 2);
  const auto& a = file->tensors()[0];
  CHECK(a.name == "a");
  CHECK(a.type == StoredType::i32);
  CHECK(a.shape == Shape{2});
  CHECK(file->find("b")->shape == Shape{1, 3});
  CHECK(file->find("b")->bytes[0] == std::byte{8});
  CHECK(file->find("c") == nullptr);

  MemoryPool pool;
  const auto loaded = file->load("a", pool);
  REQUIRE(loaded);
  CHECK(loaded->data<std::int32_t>()[0] == 0x03020100);
  CHECK(loaded->data<std::int32_t>()[1] == 0x07060504);
  CHECK(file->load("c", pool).error().text ==
        R"(there is no tensor "c" among its 2: "a", "b", ...)");
}

TEST_CASE("tensors may be unaligned and the header unpadded", "[storage]") {
  const auto file = Safetensors::parse(
      Bytes::copy_of(file_with(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                               R"( "y":{"dtype":"F32","shape":[],"data_offsets":[1,5]}})",
                               5)));
  REQUIRE(file);
  MemoryPool pool;
  CHECK(file->load("y", pool)->count() == 1);
}

TEST_CASE("empty files and empty tensors are valid", "[storage]") {
  CHECK(complaint_of(file_with("{}", 0)) == "none");
  CHECK(complaint_of(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                               R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}})",
                               4)) == "none");
}

TEST_CASE("types that Troupe cannot compute with can be listed but not loaded", "[storage]") {
  const auto file = Safetensors::parse(Bytes::copy_of(
      file_with(R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3)));
  REQUIRE(file);
  MemoryPool pool;
  CHECK(file->load("mask", pool).error().text ==
        R"(tensor "mask" has elements of type BOOL, with which Troupe does not compute)");
}

TEST_CASE("a damaged safetensors file is refused with the reason", "[storage]") {
  struct Case {
    std::string file, error;
  };
  const auto one = [](const std::string& tensor, std::size_t data) {
    return file_with("{\"a\":" + tensor + "}", data);
  };
  const Case cases[] = {
      {"", "is no safetensors file: it has 0 bytes, and its header's length alone has 8"},
      {"1234567", "is no safetensors file: it has 7 bytes, and its header's length alone has 8"},
      {std::string(8, '\xff'),
       "is no safetensors file, or a damaged one: its header would have 16777216.0 TiB "
       "(18446744073709551615 bytes); at most 16 MiB are read"},
      {file_with(two, 14).substr(0, 50),
       "is cut off: its header has 111 bytes, and only 42 are "
       "there"},
      {file_with(two, 13),
       R"(tensor "b" ends at byte 14, but the file holds only 13; it is cut off)"},
      {file_with(two, 15), "has 1 bytes after its last tensor; they belong to none"},
      {file_with("[]", 0), "header: is no map of tensors"},
      {file_with("{", 0), "header: 1:"},
      {one("{}", 0), R"(tensor "a": dtype is missing or is no text)"},
      {one("3", 0), R"(tensor "a": dtype is missing or is no text)"},
      {one(R"({"dtype":"F99","shape":[],"data_offsets":[0,4]})", 4),
       R"(tensor "a": dtype "F99" is not known)"},
      {one(R"({"dtype":"F32","data_offsets":[0,4]})", 4),
       R"(tensor "a": shape is missing or is no list; a list of integers was wanted)"},
      {one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4),
       R"(tensor "a": shape holds something that is no integer of at least 0)"},
      {one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})", 4),
       R"(tensor "a": shape holds something that is no integer of at least 0)"},
      {one(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})", 4),
       R"(tensor "a": shape has 9 entries; at most 8 are read)"},
      {one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
       R"(tensor "a": the shape has more elements than can be counted)"},
      {one(R"({"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]})", 0),
       R"(tensor "a": the shape has more elements than can be counted)"},
      {one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})", 4),
       R"(tensor "a": shape holds something that is no integer of at least 0)"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", 4),
       R"(tensor "a": data_offsets has 1 entries; begin and end were wanted)"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4),
       R"(tensor "a": data_offsets are [4, 0], but F32 [1] needs 4 bytes)"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,5]})", 5),
       R"(tensor "a": data_offsets are [0, 5], but F32 [1] needs 4 bytes)"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]})", 4),
       R"(tensor "a": "strides" is not known; dtype, shape and data_offsets were wanted)"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[9223372036854775803,9223372036854775807]})",
           4),
       R"(tensor "a" begins at byte 9223372036854775803, but what comes before it ends at 0; tensors )"
       "must not overlap or leave gaps"},
      {file_with(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                 7),
       R"(tensor "b" begins at byte 3, but what comes before it ends at 4; tensors must not overlap )"
       "or leave gaps"},
      {file_with(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})",
                 7),
       R"(tensor "b" begins at byte 5, but what comes before it ends at 4; tensors must not overlap )"
       "or leave gaps"},
      {file_with(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                 R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                 2),
       "header: 1:54: the key \"a\" comes twice in one object; keep one of them"},
      {file_with(R"({"__metadata__":{"format":1}})", 0),
       "header: __metadata__.format is no text; only texts are allowed there"},
      {file_with(R"({"__metadata__":[]})", 0),
       "header: __metadata__ is no map; a map of texts was wanted"},
  };
  for (const auto& [file, error] : cases)
    CHECK(complaint_of(file).substr(0, error == "header: 1:" ? 10 : std::string::npos) == error);
}

TEST_CASE("no proper prefix of a safetensors file is valid", "[storage]") {
  const auto whole = file_with(two, 14);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(complaint_of(whole.substr(0, size)) != "none");
}

TEST_CASE("a file of another writer is rewritten byte by byte", "[storage]") {
  const auto disk = disk_files();
  const std::string path = TROUPE_TEST_DATA "/data/gpt2.safetensors";
  const auto file = Safetensors::open(*disk, path);
  REQUIRE(file);
  CHECK(file->tensors().front().name == "wte.weight");
  MemoryFiles files;
  const auto written = write_safetensors(files, "copy", file->tensors(), file->metadata());
  REQUIRE(written);
  const auto original = disk->read(path);
  CHECK(files.read("copy")->text() == original->text());
  CHECK(written->bytes == original->size());
  CHECK(written->digest == digest_of(original->span()));
  CHECK(safetensors_bytes(file->tensors(), file->metadata()) == original->size());
}

TEST_CASE("metadata comes first and the header is padded to a multiple of 8", "[storage]") {
  const std::array<std::byte, 4> one = {};
  const TensorView tensors[] = {{"w", StoredType::f32, Shape{1}, one}};
  MemoryFiles files;
  REQUIRE(write_safetensors(files, "file", tensors, {{"format", "pt"}}));
  CHECK(
      files.read("file")->text() ==
      std::string("\x58\0\0\0\0\0\0\0", 8) +
          R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})" +
          std::string(3, ' ') + std::string(4, '\0'));
  CHECK(Safetensors::open(files, "file")->metadata() == Metadata{{"format", "pt"}});
}

TEST_CASE("tensors are sorted by descending type size and then by name", "[storage]") {
  std::vector<TensorView> tensors = {{"b", StoredType::f32, {}, {}},
                                     {"c", StoredType::u8, {}, {}},
                                     {"d", StoredType::i64, {}, {}},
                                     {"a", StoredType::f32, {}, {}},
                                     {"a16", StoredType::bf16, {}, {}}};
  sort_as_ecosystem(tensors);
  std::string names;
  for (const auto& tensor : tensors) names += tensor.name + " ";
  CHECK(names == "d a b a16 c ");
}

TEST_CASE("a failed write leaves no safetensors file", "[storage]") {
  const std::array<std::byte, 64> zeros = {};
  const TensorView tensors[] = {{"w", StoredType::u8, Shape{64}, zeros}};
  MemoryFiles files;
  files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = 100});
  CHECK_FALSE(write_safetensors(files, "file", tensors));
  CHECK_FALSE(*files.exists("file"));

  const TensorView twice[] = {tensors[0], tensors[0]};
  CHECK(write_safetensors(files, "file", twice).error().text ==
        R"(file: the tensor "w" is there twice)");
  CHECK_FALSE(*files.exists("file"));
}
