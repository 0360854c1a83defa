#!/usr/bin/env python3
"""Makes tests/golden/unet and segmenter: tiny U-Nets of torch's modules, and what they compute.

The networks are those of tests/own_unet.h. Run by hand where torch is, and commit what it writes:

    pip install torch==2.15.0 safetensors numpy
    python3 tests/golden/unet.py              # both
    python3 tests/golden/unet.py segmenter    # one

The segmenter has a target for each pixel, of which some are NaN: its loss is BCEWithLogitsLoss over the others.

The files are those of tests/golden/images.py. All is computed in float64.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

WANTED = {"torch": "2.15.0"}
HERE = pathlib.Path(__file__).resolve().parent
STEPS, SAMPLES, SIZE, WIDTH, LEVELS, CLASSES = 6, 4, 12, 5, 2, 10
RECIPE = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-4, "weight_decay": 0.01}


class Level(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class UNet(torch.nn.Module):
    def __init__(self, is_segmenter):
        super().__init__()
        self.is_segmenter = is_segmenter
        channels = [WIDTH * 2**i for i in range(LEVELS + 1)]
        for i in range(LEVELS):
            setattr(self, f"down{i}", Level(channels[i - 1] if i > 0 else 1, channels[i]))
        self.bottom = Level(channels[LEVELS - 1], channels[LEVELS])
        for i in range(LEVELS):
            level = LEVELS - 1 - i
            setattr(self, f"up{i}", Level(channels[level + 1] + channels[level], channels[level]))
        self.head = torch.nn.Conv2d(WIDTH, 1, 1, bias=False) if is_segmenter else torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        skips = []
        for i in range(LEVELS):
            x = getattr(self, f"down{i}")(x)
            skips.append(x)
            x = torch.nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for i in range(LEVELS):
            x = torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")
            x = getattr(self, f"up{i}")(torch.cat([x, skips[LEVELS - 1 - i]], 1))
        return self.head(x if self.is_segmenter else x.mean((2, 3)))


def loss_of(output, target):
    if target.dtype == torch.int64:
        return torch.nn.functional.cross_entropy(output, target)
    counts = ~target.isnan()
    return torch.nn.functional.binary_cross_entropy_with_logits(output[counts], target[counts].double())


def drawn_targets(name, generator):
    if name == "unet":
        return torch.randint(CLASSES, (STEPS * SAMPLES,), generator=generator)
    target = torch.rand(STEPS * SAMPLES, 1, SIZE, SIZE, generator=generator)
    target = torch.where(target < 0.4, 0.0, torch.where(target > 0.6, 1.0, target))
    target[torch.rand(target.shape, generator=generator) < 0.2] = float("nan")
    return target


def make(name):
    folder = HERE / name
    generator = torch.Generator().manual_seed(1)
    model = UNet(name == "segmenter")
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.dtype != torch.float32:
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() > 1:
                tensor.copy_(noise * (2 / tensor[0].numel()) ** 0.5)
            else:
                middle = 1.0 if "bn.weight" in key or "running_var" in key else 0.0
                tensor.copy_(middle + noise * 0.1)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    images = torch.randn(STEPS * SAMPLES, 1, SIZE, SIZE, generator=generator)
    target = drawn_targets(name, generator)
    wide = model.to(torch.float64)
    with torch.no_grad():
        logits = wide.eval()(images[:SAMPLES].double())
    wide.train()
    optimizer = torch.optim.AdamW(wide.parameters(), lr=RECIPE["lr"], betas=tuple(RECIPE["betas"]), eps=RECIPE["eps"],
                                  weight_decay=RECIPE["weight_decay"])
    losses = []
    for step in range(STEPS):
        rows = slice(step * SAMPLES, (step + 1) * SAMPLES)
        optimizer.zero_grad()
        loss = loss_of(wide(images[rows].double()), target[rows])
        loss.backward()
        if step == 0:
            norms = {key: weight.grad.norm().item() for key, weight in wide.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    options = dict(size=SIZE, width=WIDTH, levels=LEVELS)
    if name == "unet":
        options["dropout"] = 0.0
    trace = {"network": name, **WANTED, "model": options, "steps": STEPS, "samples": SAMPLES, "optimizer": RECIPE,
             "losses": losses, "gradient_norms": norms}
    stored = target.to(torch.int32) if name == "unet" else target
    save_file({"input": images, "target": stored, "logits": logits.float()}, folder / "data.safetensors")
    (folder / "trace.json").write_text(json.dumps(trace, indent=1) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}: loss {losses[0]:.6f} to {losses[-1]:.6f}, {size} bytes")


def main():
    if not torch.__version__.startswith(WANTED["torch"]):
        sys.exit(f"torch: found {torch.__version__}, wanted {WANTED['torch']}")
    for name in sys.argv[1:] or ["unet", "segmenter"]:
        make(name)


if __name__ == "__main__":
    main()
