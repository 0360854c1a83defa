"""Makes tests/golden/tokenizers: small tokenizers of each form, texts, and what the library makes of
them.

    python3 tests/golden/make_tokenizers.py        needs tokenizers 0.23

Each file holds a tokenizer.json, and for each text of texts.json its tokens, its tokens with the
special tokens around it, and the decoded text where that is not the text itself.
"""

import json
import os
import struct

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)
from tokenizers import __version__ as version

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers")

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

CORPUS = """The quick brown fox jumps over the lazy dog. The dog, who was not lazy, didn't mind.
They're here; we've been there, I'm sure he'll come. It's 2026 and 1234567 people don't know.
for (int i = 0; i < 100; ++i) {    sum += values[i];    }
Ein großer Übergang über die Brücke. Un café très agréable à Genève, déjà vu.
Привет мир, как дела? Это хороший день. Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم.
你好世界，今天天气很好。日本語のテキストです。한국어 문장입니다. नमस्ते दुनिया। สวัสดีชาวโลก
the the the there then than that this those these them they other another mother brother
""" * 3

TEXTS = [
    "", " ", "  ", "\n", "\n\n", " \n", "\n ", "a", " a", "a ", "  a  b   c    ", "\ta\t\tb",
    "Hello world", "hello   world \n\n  and\r\n\r\nmore \n", "line\n\n\n  \n\n end   ",
    "The quick brown fox didn't jump; they're LAZY, WE'VE DON'T I'LL he'D x'S 'tis",
    "'s 't 're 've 'm 'll 'd 'S 'RE 'vE x'\u017fy", "'''''''", "don''t", "a'b'c",
    "1 12 123 1234 12345678 3.14159 1,000,000 \u0661\u0662\u0663 \u2167 \u00bd x2y3",
    "for (int i = 0; i < 10; ++i) {\n    sum += v[i];\n}\n", "a=b+c*d/e%f^g&h|i~j!k",
    "!!!???... --- ,,, ;:;: ((([[[{{{ \u00ab\u00bb \u2014 \u2026 \u3002\uff01\uff1f",
    "!\n!\r\n?\n\n", "caf\u00e9 cafe\u0301 na\u00efve Z\u0302\u0323 \u1e69 s\u0323\u0307 \u00c5 \u212b",
    "\u1100\u1161\u11a8 \uac01 \ud55c\uad6d\uc5b4 \ufb01 \ufb05 \uff21\uff42\uff43 \u2460",
    "Gro\u00dfe \u00dcBERGANG \u0130stanbul I\u0307 \u01c5 \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u1e9e",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u043b\u043a\u0430 \u0439",
    "\u4f60\u597d\u4e16\u754c\uff0cabc\u4e2d\u6587 \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \U00020000\U0002a700\u3400",
    "\u05e9\u05dc\u05d5\u05b9\u05dd \u0645\u0631\u062d\u0628\u064b\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f 1\ufe0f\u20e3",
    "a\u0000b\u0001c\u007f\u0080d\u00ade\u200bf\u200dg\ufeffh\ufffdi\ue000j\u0378k",
    "x\u00a0y\u2003z\u3000w\u2028v\u0085u\u1680t\u200at", "\u00a0", "\u3000\u3000a",
    "the<eot>dog <eot> dog<eot><eot>", "a <mask> b<mask>c  <mask>  ", "no <half no <eo t>",
    "Word the word wordy swords word. (word) word\u0301", "Caf\u00e9! CAF\u00c9! cafe!",
    "ab  <strip>  cd<strip>", "<s>the</s> [CLS]dog[SEP] [UNK] <unk> <pad>",
    "\u2581the\u2581 dog \u2581\u2581x", "<0x41><0xE4> the", "\u0120the \u010a",
    "the" * 20, "x" * 130, "\u00e9" * 40, " " * 33 + "a", "\n" * 21, "ab" * 16 + "c", "z" * 31 + " z",
    "``quoted'' ~1 //2 \\n \\\\ @#$ \u20ac\u00a3", "the.dog,the;dog", "do not . , ' n't 'm 's 've 're x",
    "a\u0301\u0300\u0302\u0303b \u0301 \r\u0301 \u0001\u0301 q\u0300q\u0301\u0300",
    "\u0f40\u0f71\u0f72 \u0958 \u0915\u093c \u2126 \u2000\u0344", "\u1c8a\u0d4e\U00031350\U0001e030x\U00010d40",
]


def tokens(*texts, **settings):
    return [AddedToken(text, **settings) for text in texts]


def add_more(tokenizer):
    """Adds tokens of each kind."""
    tokenizer.add_special_tokens(tokens("<eot>"))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=False),
                          AddedToken("<strip>", lstrip=True, rstrip=True, normalized=False),
                          AddedToken("Caf\u00e9!", normalized=True)])


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS.split("\n"), trainer)


def byte_level(pre, normalizer=None, size=420, post=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                         special_tokens=["<s>", "</s>"],
                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    add_more(tokenizer)
    if post:
        tokenizer.post_processor = post
    return tokenizer


def changed(tokenizer, change):
    tree = json.loads(tokenizer.to_str())
    change(tree)
    return Tokenizer.from_str(json.dumps(tree))


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def roberta():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), size=300,
                      post=processors.RobertaProcessing(("</s>", 1), ("<s>", 0)))


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(False, use_regex=False)])


def llama3():
    def ignore_merges(tree):
        model = tree["model"]
        model["ignore_merges"] = True
        # Without these merges some tokens are found as whole words alone.
        model["merges"] = [m for i, m in enumerate(model["merges"]) if i % 7 or i < 20]
    post = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                processors.TemplateProcessing(single="<s> $A",
                                                              special_tokens=[("<s>", 0)])])
    return changed(byte_level(split(LLAMA3), post=post), ignore_merges)


def qwen2():
    def merge_digits(tree):  # The rule keeps them apart.
        model = tree["model"]
        model["vocab"]["12"] = len(model["vocab"]) + len(tree["added_tokens"])
        model["merges"].append(["1", "2"])
    return changed(byte_level(split(QWEN2), normalizers.NFC(), post=processors.ByteLevel()),
                   merge_digits)


def sentencepiece_bpe(byte_fallback=True):
    """Returns a BPE model over characters, with tokens of bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    train(tokenizer, trainers.BpeTrainer(vocab_size=200, limit_alphabet=70, show_progress=False,
                                         special_tokens=["<unk>", "<s>", "</s>"]))
    def bytes_too(tree):
        model = tree["model"]
        if byte_fallback:
            for byte in range(256):
                model["vocab"].setdefault(f"<0x{byte:02X}>", len(model["vocab"]))
        model["byte_fallback"] = byte_fallback
        for run in ("\u2581\u2581", "\u2581\u2581\u2581\u2581"):
            model["vocab"][run] = len(model["vocab"])
            model["merges"].append([run[:len(run) // 2]] * 2)
        tree["pre_tokenizer"] = None
    tokenizer = changed(tokenizer, bytes_too)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    add_more(tokenizer)
    return tokenizer


REPLACED = normalizers.Replace(" ", "\u2581")
BYTES = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]


def llama2_before():
    tokenizer = sentencepiece_bpe()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), REPLACED])
    tokenizer.decoder = decoders.Sequence(BYTES + [decoders.Strip(" ", 1, 0)])
    return tokenizer


def llama2():
    tokenizer = sentencepiece_bpe()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(BYTES + [decoders.Strip(" ", 1, 0)])
    return tokenizer


def without_bytes():
    tokenizer = sentencepiece_bpe(byte_fallback=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def gemma():
    tokenizer = sentencepiece_bpe()
    tokenizer.normalizer = REPLACED
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(BYTES)
    return tokenizer


def bert(**settings):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**settings)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    train(tokenizer, trainers.WordPieceTrainer(
        vocab_size=260, limit_alphabet=110, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    add_more(tokenizer)
    return tokenizer


RULES = {"\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\uff21": "A",
         "\uff42": "b", "\ufb01": "fi", "\u2460": "1", "\u212b": "\u00c5", "\u00ad": "",
         "\u200b": " ", "\u2126": "\u03a9", "e\u0301": "\u00e9", "q": "k", "\u0001": "",
         "\u1100\u1161\u11a8": "\uac01", "\u2026": "...", "\u0958": "\u0915\u093c"}


def charsmap():
    """Returns RULES in SentencePiece's form: a double array, and the texts that replace others."""
    texts, values = b"", {}
    for source, target in RULES.items():
        values[source.encode()] = len(texts)
        texts += target.encode() + b"\0"
    units = {0: 0}

    def place(position, prefix):
        """Places the children of a unit. A leaf is the child with the label 0."""
        labels = {key[len(prefix)] for key in values if key.startswith(prefix) and key != prefix}
        labels |= {0} if prefix in values else set()
        base = next(b for b in range(1, 1 << 20) if all(b ^ label not in units for label in labels))
        units[position] |= (position ^ base) << 10 | (1 << 8 if prefix in values else 0)
        for label in labels:
            units[base ^ label] = label if label else values[prefix] | 1 << 31
        for label in labels - {0}:
            place(base ^ label, prefix + bytes([label]))

    place(0, b"")
    array = [units.get(i, 0) for i in range(max(units) + 256)]
    return struct.pack(f"<I{len(array)}I", 4 * len(array), *array) + texts


def t5(byte_fallback=False):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    train(tokenizer, trainers.UnigramTrainer(vocab_size=170, unk_token="<unk>", show_progress=False,
                                             special_tokens=["<unk>", "</s>"]))
    scores = dict(json.loads(tokenizer.to_str())["model"]["vocab"])
    # The scores of "th" + "e" and of "t" + "he" are equal, and those of "xx" and "x" + "x".
    scores.update({"\u2581t": -3.0, "he": -4.0, "\u2581th": -5.0, "e": -2.0, "x": -2.5, "xx": -5.0})
    scores.pop("\u2581the", None)
    if byte_fallback:
        scores.update({f"<0x{byte:02X}>": 0.0 for byte in range(256)})
    tokenizer = Tokenizer(
        models.Unigram(list(scores.items()), unk_id=0, byte_fallback=byte_fallback))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Metaspace(prepend_scheme="always") if byte_fallback else
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))
    tokenizer.decoder = (decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
                         if byte_fallback else decoders.Metaspace())
    tokenizer.add_special_tokens(tokens("</s>", "<pad>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    add_more(tokenizer)
    return tokenizer


FORMS = {
    "gpt2": gpt2,
    "roberta": roberta,
    "llama3": llama3,
    "qwen2": qwen2,
    "llama2": llama2,
    "llama2_before": llama2_before,
    "bpe_unknown": without_bytes,
    "gemma": gemma,
    "bert": bert,
    "bert_cased": lambda: bert(lowercase=False, handle_chinese_chars=False),
    "t5": t5,
    "unigram_bytes": lambda: t5(byte_fallback=True),
}


def case(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    row = [ids]
    around = tokenizer.encode(text).ids
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    before = (len(around) - len(ids) and next(
        n for n in range(len(around) - len(ids) + 1) if around[n:n + len(ids)] == ids))
    assert around[before:len(around) - (len(around) - len(ids) - before)] == ids
    row.append(None if decoded == text else decoded)
    return row, [around[:before], around[before + len(ids):]]


def write(path, value):
    with open(os.path.join(HERE, path), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


def main():
    os.makedirs(HERE, exist_ok=True)
    write("texts.json", TEXTS)
    for name, make in FORMS.items():
        tokenizer = make()
        rows = [case(tokenizer, text) for text in TEXTS]
        around = next(row[1] for text, row in zip(TEXTS, rows) if text == "Hello world")
        write(name + ".json", {"made_by": f"tokenizers {version}", "around": around,
                               "cases": [row[0] for row in rows],
                               "tokenizer": json.loads(tokenizer.to_str())})


if __name__ == "__main__":
    main()
