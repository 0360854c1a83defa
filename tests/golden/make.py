#!/usr/bin/env python3
"""Makes tests/golden/families: tiny models of transformers, and what they compute in float64.

Run by hand where torch and transformers are, and commit what it writes:

    pip install torch==2.15.0 transformers==5.24.0 safetensors numpy
    python3 tests/golden/make.py              # all families
    python3 tests/golden/make.py qwen3 phi    # some
    python3 tests/golden/make.py --losses     # llama/losses.json alone
    python3 tests/golden/make.py --generated  # generated.json of t5 and t5_v1_1 alone
    python3 tests/golden/make.py --load DIR --like qwen3

Each family is a folder as transformers writes it (config.json, model.safetensors in float32), with

- data.safetensors: `input` and `target`, tokens [steps * samples, length], and `logits` of the first
  step's samples before training. Samples of t5 and bert have other lengths each: `span` says what
  each position looks at, nothing if it is padding. T5 has `memory_span` and `decoder_tokens` too,
  bert_pairs has `token_types`. A target of -100 does not count;
- trace.json: the loss and the norm of each parameter's gradient at the first step, the losses of
  all steps of AdamW, and by how much the loss moves if float32 stays where transformers computes in
  float32 even in a float64 model (RMSNorm, rotary positions, softmax). Gradients of experts include
  that of the balance loss, and losses leave it out.

llama/losses.json has the losses and the norms of gradients of all steps for other forms of the
loss. With `ignore`, the first `left_out` targets of each sample do not count.

t5/generated.json has texts that the decoder writes for some sources: the likeliest tokens, as
`generate` gives them, with the probabilities of all tokens before each.

--load reads a folder with from_pretrained and prints its logits; with --like their greatest
difference from those of a family.
"""

import argparse
import contextlib
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

WANTED = {"torch": "2.15.0", "transformers": "5.24.0"}
HERE = pathlib.Path(__file__).resolve().parent / "families"
STEPS, SAMPLES, LENGTH, VOCAB = 8, 2, 16, 48
RECIPE = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}

SIZES = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=LENGTH)
GATED = dict(SIZES, intermediate_size=48, num_key_value_heads=2)
OLD = dict(vocab_size=VOCAB, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=128)
SOURCE, TARGET = 24, 10  # Of T5.
T5 = dict(vocab_size=VOCAB, d_model=32, d_kv=6, d_ff=40, num_layers=2, num_heads=4, dropout_rate=0.0, pad_token_id=0,
          decoder_start_token_id=0, eos_token_id=1)
FAMILIES = {
    "gpt2": ("GPT2", dict(OLD, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, bos_token_id=0, eos_token_id=0)),
    "llama": ("Llama", GATED),
    "llama3": ("Llama", dict(GATED, rope_parameters=LLAMA3)),
    "linear": ("Llama", dict(GATED, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0))),
    "mistral": ("Mistral", dict(GATED, head_dim=6, sliding_window=5)),
    "qwen2": ("Qwen2", GATED),
    "qwen3": ("Qwen3", dict(GATED, head_dim=16, tie_word_embeddings=True)),
    "gpt_neox": ("GPTNeoX", dict(SIZES, intermediate_size=64,
                                 rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))),
    "gpt_neox_serial": ("GPTNeoX", dict(SIZES, intermediate_size=64, use_parallel_residual=False, hidden_act="gelu_new")),
    "gptj": ("GPTJ", dict(OLD, rotary_dim=4, bos_token_id=0, eos_token_id=0)),
    "phi": ("Phi", dict(SIZES, intermediate_size=64,
                        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))),
    "gemma": ("Gemma", dict(GATED, head_dim=16, pad_token_id=None)),
    "gemma2": ("Gemma2", dict(GATED, head_dim=16, pad_token_id=None, sliding_window=5, query_pre_attn_scalar=8,
                              attn_logit_softcapping=4.0, final_logit_softcapping=12.0)),
    "yarn": ("Qwen2", dict(GATED, rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=8.0,
                                                       original_max_position_embeddings=64))),
    "mixtral": ("Mixtral", dict(GATED, intermediate_size=24, num_local_experts=4, output_router_logits=True,
                                router_aux_loss_coef=0.3)),
    "qwen3_moe": ("Qwen3Moe", dict(GATED, head_dim=16, moe_intermediate_size=12, num_experts=6, num_experts_per_tok=3)),
    "qwen3_moe_sparse": ("Qwen3Moe", dict(GATED, head_dim=16, moe_intermediate_size=12, num_experts=5, num_experts_per_tok=2,
                                          decoder_sparse_step=2, norm_topk_prob=True, output_router_logits=True,
                                          router_aux_loss_coef=0.3)),
    "t5": ("T5", dict(T5, feed_forward_proj="relu", num_decoder_layers=3)),
    "t5_v1_1": ("T5", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "bert": ("Bert", dict(SIZES, max_position_embeddings=20, intermediate_size=40, type_vocab_size=2,
                          hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=None)),
    "bert_pairs": ("Bert", dict(SIZES, max_position_embeddings=20, intermediate_size=40, type_vocab_size=2,
                                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=None)),
}
CLASSES = {"T5": transformers.AutoModelForSeq2SeqLM, "Bert": transformers.AutoModelForMaskedLM}


@contextlib.contextmanager
def in_float64():
    """Makes float64 of every float32 that code names, and of .float()."""
    kept = torch.float32, torch.float, torch.Tensor.float, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = lambda self, *_, **__: self.to(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept[:3]
        torch.set_default_dtype(kept[3])


def seed_of(name):
    """Returns the place in the list: a new family goes to its end, and moves no other."""
    return list(FAMILIES).index(name) + 1


def untied(model, name):
    """Gives T5 1.1 a head of its own, as its files have it. The library ties the heads of all T5 since its version 5."""
    if name == "t5_v1_1":
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    return model


def random_model(name, config):
    """Returns a model whose weights, also biases and scales of norms, are far from special values."""
    model = CLASSES.get(FAMILIES[name][0], transformers.AutoModelForCausalLM).from_config(config)
    untied(model, name)
    generator = torch.Generator().manual_seed(seed_of(name))
    with torch.no_grad():
        for key, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            is_matrix = weight.dim() > 1
            middle = 1.0 if "norm" in key.lower() or "ln_" in key else 0.0
            if key.endswith("bias") or name.startswith("gemma"):
                middle = 0.0
            # T5 does not scale scores, so larger weights would let single keys win.
            spread = 0.2 if name.startswith("t5") else 0.3
            weight.copy_(noise * spread if is_matrix else middle + noise * 0.2)
    return model


def double(model, config, name=""):
    made = untied(type(model)(config), name).to(torch.float64)
    made.load_state_dict({key: value.to(torch.float64) for key, value in model.state_dict().items()})
    return made.train()


def loss_of(logits, target, ignore=-100, smoothing=0.0, z=0.0):
    logits, target = logits.reshape(-1, VOCAB), target.reshape(-1).long()
    loss = torch.nn.functional.cross_entropy(logits, target, ignore_index=ignore, label_smoothing=smoothing)
    return loss + z * logits[target != ignore].logsumexp(-1).square().mean() if z else loss


def balance_of(config, output):
    """Returns the weighted balance loss of a mixture of experts: the mean of those of its layers.

    transformers joins the tokens of all layers to one loss. Of one layer both are equal.
    """
    routers = getattr(output, "router_logits", None)
    if not getattr(config, "output_router_logits", False) or not routers:
        return 0.0
    module = sys.modules[f"transformers.models.{config.model_type}.modeling_{config.model_type}"]
    each = [module.load_balancing_loss_func((router,), config.num_experts, config.num_experts_per_tok) for router in routers]
    if len(each) == 1:
        assert torch.allclose(each[0], output.aux_loss)
    return config.router_aux_loss_coef * sum(each) / len(each)


def spans_of(rows, lengths):
    """Returns for each of so many rows of a sample that it looks at the sample's first tokens. Rows of padding look at
    nothing: those from the length on if there are as many rows as tokens."""
    spans = torch.zeros(len(lengths), rows, 2, dtype=torch.int32)
    for span, length in zip(spans, lengths):
        span[:, 1] = length
    return spans


def samples_of(kind, generator, has_pairs=False):
    """Returns what data.safetensors has of random samples, but for logits."""
    def draw(*shape):
        return torch.randint(2, VOCAB, shape, generator=generator, dtype=torch.int32)

    def lengths(most):
        return torch.randint(most // 2, most + 1, (STEPS * SAMPLES,), generator=generator).tolist()

    if kind == "T5":
        source, target, of_source = draw(STEPS * SAMPLES, SOURCE), draw(STEPS * SAMPLES, TARGET), lengths(SOURCE)
        decoder = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], 1)
        span = spans_of(SOURCE, of_source)
        for row, (length, of_target) in enumerate(zip(of_source, lengths(TARGET))):
            span[row, length:] = 0
            target[row, of_target:] = -100
        return {"input": source, "span": span, "memory_span": spans_of(TARGET, of_source), "decoder_tokens": decoder,
                "target": target}
    if kind == "Bert":
        tokens, of_samples = draw(STEPS * SAMPLES, LENGTH), lengths(LENGTH)
        span, target = spans_of(LENGTH, of_samples), draw(STEPS * SAMPLES, LENGTH)
        target[torch.rand(target.shape, generator=generator) > 0.4] = -100
        for row, length in enumerate(of_samples):
            span[row, length:] = 0
            target[row, length:] = -100
            target[row, 0] = 7
        made = {"input": tokens, "span": span, "target": target}
        if has_pairs:
            middle = [length // 3 + 2 for length in of_samples]
            made["token_types"] = torch.tensor([[int(first <= at < length) for at in range(LENGTH)]
                                                for first, length in zip(middle, of_samples)], dtype=torch.int32)
        return made
    tokens = torch.randint(VOCAB, (STEPS * SAMPLES, LENGTH + 1), generator=generator)
    return {"input": tokens[:, :-1].contiguous(), "target": tokens[:, 1:].contiguous()}


def output_of(model, data, rows=slice(0, SAMPLES)):
    """Calls a model with some samples."""
    tokens = data["input"][rows].long()
    if "span" not in data:
        return model(tokens)
    mask = (torch.arange(tokens.shape[1]) < data["span"][rows, :1, 1]).long()
    if "token_types" in data:
        return model(tokens, attention_mask=mask, token_type_ids=data["token_types"][rows].long())
    if "decoder_tokens" not in data:
        return model(tokens, attention_mask=mask)
    return model(tokens, attention_mask=mask, decoder_input_ids=data["decoder_tokens"][rows].long())


def make(name):
    kind, options = FAMILIES[name]
    config = getattr(transformers, kind + "Config")(**options)
    config._attn_implementation = config._experts_implementation = "eager"
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    model = random_model(name, config)
    model.save_pretrained(folder)
    if name == "t5_v1_1":
        file = folder / "config.json"
        written = json.loads(file.read_text())
        del written["scale_decoder_outputs"]
        file.write_text(json.dumps({**written, "tie_word_embeddings": False}, indent=2, sort_keys=True) + "\n")
    generator = torch.Generator().manual_seed(999 + seed_of(name))
    data = samples_of(kind, generator, name == "bert_pairs")
    target = data["target"]
    with torch.no_grad():
        narrow = double(model, config, name)
        with_casts = loss_of(output_of(narrow, data).logits, target[:SAMPLES]).item()
    saved = load_file(folder / "model.safetensors")

    def saved_parts(key, weight, gradient):
        """Yields names and gradients as files have them: they keep names that the library has changed since, and the
        matrices of experts, which the library joins."""
        if key in saved:
            yield key, gradient
        elif weight.dim() == 3:
            joined = 2 if key.endswith("gate_up_proj") else 1
            for expert, of_expert in zip(weight, gradient):
                for half, of_half in zip(expert.chunk(joined), of_expert.chunk(joined)):
                    yield from saved_parts("", half, of_half)
        else:
            yield next(name for name, tensor in saved.items()
                       if torch.equal(tensor, weight.detach().to(tensor.dtype))), gradient

    trace = {"family": name, **{key: value for key, value in WANTED.items()}, "steps": STEPS, "samples": SAMPLES,
             "optimizer": RECIPE}
    with in_float64():
        wide = double(model, config, name)
        optimizer = torch.optim.AdamW(wide.parameters(), lr=RECIPE["lr"], betas=tuple(RECIPE["betas"]),
                                      eps=RECIPE["eps"], weight_decay=RECIPE["weight_decay"])
        losses = []
        for step in range(STEPS):
            rows = slice(step * SAMPLES, (step + 1) * SAMPLES)
            optimizer.zero_grad()
            output = output_of(wide, data, rows)
            logits = output.logits
            loss = loss_of(logits, target[rows])
            (loss + balance_of(config, output)).backward()
            if step == 0:
                first = logits.detach().clone()
                norms = {}
                for key, weight in wide.named_parameters():
                    for part, gradient in saved_parts(key, weight, weight.grad):
                        norms[part] = gradient.norm().item()
            optimizer.step()
            losses.append(loss.item())
    trace["losses"], trace["gradient_norms"] = losses, norms
    trace["float32_casts_move_loss"] = abs(with_casts - losses[0]) / losses[0]
    save_file({**{key: value.to(torch.int32) for key, value in data.items()}, "logits": first.to(torch.float32)},
              folder / "data.safetensors")
    (folder / "trace.json").write_text(json.dumps(trace, indent=1) + "\n")
    (folder / "generation_config.json").unlink(missing_ok=True)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}: loss {losses[0]:.6f} to {losses[-1]:.6f}, float32 moves it by {trace['float32_casts_move_loss']:.1e}, "
          f"{size} bytes")
    if size > 250_000:
        sys.exit(f"{name}: found {size} bytes, wanted at most 250000")


LOSSES = [{"ignore": -100}, {"smoothing": 0.1}, {"z": 1e-3}, {"ignore": -7, "smoothing": 0.2, "z": 1e-2}]


def make_losses(name="llama"):
    folder = HERE / name
    config = transformers.AutoConfig.from_pretrained(folder)
    config._attn_implementation = config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32)
    data = load_file(folder / "data.safetensors")
    left_out = [(5 * row + 3) % (LENGTH + 1) for row in range(STEPS * SAMPLES)]
    traces = []
    for form in LOSSES:
        target = data["target"].long()
        for row, count in enumerate(left_out):
            target[row, :count] = form.get("ignore", target[row, :count])
        with in_float64():
            wide = double(model, config)
            optimizer = torch.optim.AdamW(wide.parameters(), lr=RECIPE["lr"], betas=tuple(RECIPE["betas"]),
                                          eps=RECIPE["eps"], weight_decay=RECIPE["weight_decay"])
            losses, norms = [], []
            for step in range(STEPS):
                rows = slice(step * SAMPLES, (step + 1) * SAMPLES)
                optimizer.zero_grad()
                loss = loss_of(wide(data["input"][rows].long()).logits, target[rows], **form)
                loss.backward()
                norms.append(torch.stack([weight.grad.norm() for weight in wide.parameters()]).norm().item())
                optimizer.step()
                losses.append(loss.item())
        traces.append({"form": form, "losses": losses, "gradient_norms": norms})
        print(f"{form}: loss {losses[0]:.6f} to {losses[-1]:.6f}")
    made = {"family": name, **WANTED, "optimizer": RECIPE, "left_out": left_out, "traces": traces}
    (folder / "losses.json").write_text(json.dumps(made, indent=1) + "\n")


def make_generated(name):
    """Writes the texts of three sources. A token of the first one ends texts, so that it is a short one."""
    folder = HERE / name
    config = transformers.AutoConfig.from_pretrained(folder)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, config=config, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(77)
    most, texts = TARGET - 1, []
    with in_float64():
        wide = type(model)(config).to(torch.float64)
        if name == "t5_v1_1":
            untied(wide, name)
        wide.load_state_dict({key: value.to(torch.float64) for key, value in model.state_dict().items()})
        wide.eval()
        options = dict(max_new_tokens=most, do_sample=False, num_beams=1, use_cache=False, output_scores=True,
                       return_dict_in_generate=True)
        sources, ends = [], []
        while not ends:  # The first source gets a text in which a new token comes late enough.
            sources = [torch.randint(2, VOCAB, (1, length), generator=generator) for length in (5, 13, SOURCE)]
            whole = wide.generate(sources[0], eos_token_id=None, **options).sequences[0, 1:].tolist()
            ends = [token for at, token in enumerate(whole) if at >= 2 and token not in whole[:at]]
        end = ends[0]
        for source in sources:
            made = wide.generate(source, eos_token_id=end, **options)
            texts.append({"source": source[0].tolist(), "tokens": made.sequences[0, 1:].tolist(),
                          "probabilities": [[round(p, 9) for p in scores[0].softmax(-1).tolist()] for scores in made.scores]})
    (folder / "generated.json").write_text(json.dumps({"family": name, **WANTED, "most": most, "end": end, "texts": texts}) + "\n")
    print(f"{name}: {[len(text['tokens']) for text in texts]} tokens")


def load(folder, like):
    loader = CLASSES.get(FAMILIES[like][0] if like else "", transformers.AutoModelForCausalLM)
    model = loader.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    known = load_file(HERE / like / "data.safetensors") if like else None
    with torch.no_grad():
        logits = output_of(model, known or {"input": torch.arange(LENGTH).reshape(1, -1)}).logits
    if not known:
        print(json.dumps(logits.tolist()))
        return
    print(f"{type(model).__name__}: greatest difference of logits {(logits - known['logits']).abs().max().item():.2e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="*", help="default: all")
    parser.add_argument("--losses", action="store_true")
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--load", metavar="DIR")
    parser.add_argument("--like", metavar="FAMILY", choices=FAMILIES)
    arguments = parser.parse_args()
    for library, version in WANTED.items():
        if not sys.modules[library].__version__.startswith(version):
            sys.exit(f"{library}: found {sys.modules[library].__version__}, wanted {version}")
    if arguments.load:
        return load(arguments.load, arguments.like)
    if arguments.losses:
        return make_losses()
    for name in arguments.family or ([] if arguments.generated else FAMILIES):
        make(name)
    if arguments.generated or not arguments.family:
        for name in ["t5", "t5_v1_1"]:
            make_generated(name)
    if not arguments.family and not arguments.generated:
        make_losses()


if __name__ == "__main__":
    main()
