#include <map>

#include "storage/tokenizer/fields.h"
#include "storage/tokenizer/steps.h"

namespace troupe::storage {
namespace {

using TokenIds = std::vector<std::int32_t>;
constexpr std::int64_t most_special_id = (std::int64_t{1} << 24) - 1;
constexpr std::size_t most_around = 64;

/// Reads the list [text, id] of Bert's and Roberta's settings.
std::int32_t read_named_id(Fields& fields, std::string_view key) {
  const auto* list = fields.list(key);
  if (list && list->size() == 2 && (*list)[0].text() && (*list)[1].integer() &&
      *(*list)[1].integer() >= 0 && *(*list)[1].integer() <= most_special_id)
    return static_cast<std::int32_t>(*(*list)[1].integer());
  if (list) fields.fail(key, "is no list of a token and its id");
  return 0;
}

Result<DocumentTemplate> read_bert_template(Fields& fields, bool is_roberta) {
  DocumentTemplate around;
  around.behind.push_back(read_named_id(fields, "sep"));
  around.before.push_back(read_named_id(fields, "cls"));
  if (is_roberta)
    for (const auto* key : {"trim_offsets", "add_prefix_space"}) fields.ignore(key);
  if (auto status = fields.finish(); !status) return status.error();
  return around;
}

Result<std::map<std::string, TokenIds>> read_special_tokens(Fields& fields) {
  std::map<std::string, TokenIds> read;
  const auto* tokens = fields.map("special_tokens");
  if (!tokens) return fields.finish().error();
  for (const auto& entry : *tokens) {
    Fields token(entry.value, fields.place_of("special_tokens") + "." + entry.key);
    token.ignore("id");
    token.ignore("tokens");
    const auto* ids = token.list("ids");
    if (auto status = token.finish(); !status) return status.error();
    for (const auto& id : *ids) {
      if (!id.integer() || *id.integer() < 0 || *id.integer() > most_special_id)
        return Error{token.place_of("ids") + ": has a value that is no id of a token"};
      read[entry.key].push_back(static_cast<std::int32_t>(*id.integer()));
    }
  }
  return read;
}

Result<DocumentTemplate> read_processing(Fields& fields) {
  const auto special = read_special_tokens(fields);
  if (!special) return special.error();
  fields.ignore("pair");  // The template for two texts. A document is one.
  const auto* single = fields.list("single");
  if (auto status = fields.finish(); !status) return status.error();
  DocumentTemplate around;
  int texts = 0;
  for (std::size_t i = 0; i < single->size(); ++i) {
    Fields piece((*single)[i], fields.place_of("single") + "[" + std::to_string(i) + "]");
    const bool is_text = (*single)[i].find("Sequence") != nullptr;
    const auto* key = is_text ? "Sequence" : "SpecialToken";
    const auto* value = piece.find(key);
    if (!value) piece.fail(key, "is missing; Sequence or SpecialToken was wanted");
    if (auto status = piece.finish(); !status) return status.error();
    Fields inner(*value, piece.place_of(key));
    const auto name = inner.text("id");
    inner.ignore("type_id");
    const auto found = special->find(name);
    if (is_text && (name != "A" || ++texts > 1))
      inner.fail("id", "is \"" + name + "\"; the text A, once, was wanted");
    else if (!is_text && found == special->end())
      inner.fail("id", "is \"" + name + "\", which is not in special_tokens");
    if (auto status = inner.finish(); !status) return status.error();
    if (is_text) continue;
    auto& side = texts == 0 ? around.before : around.behind;
    side.insert(side.end(), found->second.begin(), found->second.end());
    if (side.size() > most_around)
      return Error{piece.place() + ": is one of more than 64 tokens around a text"};
  }
  if (texts != 1) return Error{fields.place_of("single") + ": lacks the text A"};
  return around;
}

}  // namespace

Result<DocumentTemplate> read_template(const Value* value, const std::string& place) {
  if (!value) return DocumentTemplate();
  Fields fields(*value, place);
  const auto type = fields.text("type");
  if (type == "TemplateProcessing") return read_processing(fields);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return read_bert_template(fields, type == "RobertaProcessing");
  DocumentTemplate around;
  if (type == "ByteLevel") {  // It changes offsets alone.
    for (const auto* key : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.ignore(key);
  } else if (type == "Sequence") {
    const auto* list = fields.list("processors");
    if (auto status = fields.finish(); !status) return status.error();
    for (std::size_t i = 0; i < list->size(); ++i) {
      const auto here = fields.place_of("processors") + "[" + std::to_string(i) + "]";
      auto read = read_template(&(*list)[i], here);
      if (!read) return read.error();
      const bool adds = !read->before.empty() || !read->behind.empty();
      if (adds && (!around.before.empty() || !around.behind.empty()))
        return Error{here + ": is a second template; at most one was wanted"};
      if (adds) around = std::move(*read);
    }
  } else {
    fields.fail("type", "is \"" + type +
                            "\"; known are BertProcessing, ByteLevel, RobertaProcessing, Sequence "
                            "and TemplateProcessing");
  }
  if (auto status = fields.finish(); !status) return status.error();
  return around;
}

}  // namespace troupe::storage
