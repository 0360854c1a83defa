#!/usr/bin/env python3
"""Makes tests/golden/images: tiny networks for images of torchvision's blocks, and what they compute.

Run by hand where torch and torchvision are, and commit what it writes:

    pip install torch==2.15.0 torchvision==0.29.2 safetensors numpy
    python3 tests/golden/images.py            # all
    python3 tests/golden/images.py resnet     # one
    python3 tests/golden/images.py --names    # prints names and shapes of torchvision's own networks

Each folder has

- model.safetensors: the state dict in float32, as torchvision names it;
- data.safetensors: `input` [steps * samples, channels, height, width] and `target`, and `logits` of the
  first step's samples in evaluation, before training;
- trace.json: options of our model, the norm of each parameter's gradient at the first step, and the
  losses of all steps of AdamW in training mode. All is computed in float64.
"""

import argparse
import json
import pathlib
import sys

import torch
import torchvision
from safetensors.torch import save_file
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

WANTED = {"torch": "2.15.0", "torchvision": "0.29.2"}
HERE = pathlib.Path(__file__).resolve().parent / "images"
STEPS, SAMPLES, CHANNELS, SIZE, CLASSES = 6, 4, 2, 21, 7
# A batch norm makes some gradients zero but for rounding. With the usual eps AdamW would make whole steps of them:
# torchvision's own float32 run would be 2e-3 away.
RECIPE = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-4, "weight_decay": 0.01}
NETWORKS = {
    "resnet": dict(block="bottleneck", widths=[6, 8], blocks=[2, 1]),
    "wide_resnet": dict(block="bottleneck", widths=[6, 8], blocks=[1, 2], base_width=128),
    "basic": dict(block="basic", widths=[10, 12], blocks=[1, 2]),
}
OWN = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "wide_resnet101_2"]


class Small(ResNet):
    """torchvision's ResNet with other widths: its own ones are fixed."""

    def __init__(self, block, widths, blocks, base_width=64):
        torch.nn.Module.__init__(self)
        block = {"basic": BasicBlock, "bottleneck": Bottleneck}[block]
        self._norm_layer = torch.nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = 64, 1, 1, base_width
        self.conv1 = torch.nn.Conv2d(CHANNELS, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(64)
        self.relu = torch.nn.ReLU()
        self.maxpool = torch.nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for g, (width, count) in enumerate(zip(widths, blocks)):
            setattr(self, f"layer{g + 1}", self._make_layer(block, width, count, stride=2 if g > 0 else 1))
        for g in range(len(widths), 4):
            setattr(self, f"layer{g + 1}", torch.nn.Identity())
        self.avgpool = torch.nn.AdaptiveAvgPool2d((1, 1))
        self.fc = torch.nn.Linear(widths[-1] * block.expansion, CLASSES)


def make(name):
    generator = torch.Generator().manual_seed(list(NETWORKS).index(name) + 1)
    model = Small(**NETWORKS[name])
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.dtype != torch.float32:
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() > 1:
                tensor.copy_(noise * (2 / tensor[0].numel()) ** 0.5)
            else:
                middle = 1.0 if "bn" in key and "weight" in key or "running_var" in key else 0.0
                tensor.copy_(middle + noise * 0.1)
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    images = torch.randn(STEPS * SAMPLES, CHANNELS, SIZE, SIZE, generator=generator)
    target = torch.randint(CLASSES, (STEPS * SAMPLES,), generator=generator)
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
        loss = torch.nn.functional.cross_entropy(wide(images[rows].double()), target[rows])
        loss.backward()
        if step == 0:
            norms = {key: weight.grad.norm().item() for key, weight in wide.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    options = dict(kind="resnet", channels=CHANNELS, classes=CLASSES, stem="imagenet", **NETWORKS[name])
    trace = {"network": name, **WANTED, "model": options, "steps": STEPS, "samples": SAMPLES, "optimizer": RECIPE,
             "losses": losses, "gradient_norms": norms}
    save_file({"input": images, "target": target.to(torch.int32), "logits": logits.float()}, folder / "data.safetensors")
    (folder / "trace.json").write_text(json.dumps(trace, indent=1) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}: loss {losses[0]:.6f} to {losses[-1]:.6f}, {size} bytes")
    if size > 250_000:
        sys.exit(f"{name}: found {size} bytes, wanted at most 250000")


def print_names():
    for name in OWN:
        for key, weight in torchvision.models.get_model(name).named_parameters():
            print(name, key, list(weight.shape))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="*", help="default: all")
    parser.add_argument("--names", action="store_true")
    arguments = parser.parse_args()
    for library, version in WANTED.items():
        if not sys.modules[library].__version__.startswith(version):
            sys.exit(f"{library}: found {sys.modules[library].__version__}, wanted {version}")
    if arguments.names:
        return print_names()
    for name in arguments.network or NETWORKS:
        make(name)


if __name__ == "__main__":
    main()
