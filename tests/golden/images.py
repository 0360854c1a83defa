#!/usr/bin/env python3
"""Makes tests/golden/images: tiny networks for images of torchvision's blocks and timm's, and what they compute.

Run by hand where torch, torchvision and timm are, and commit what it writes:

    pip install torch==2.15.0 torchvision==0.29.2 timm==1.0.31 safetensors numpy
    python3 tests/golden/images.py            # all
    python3 tests/golden/images.py resnet     # one
    python3 tests/golden/images.py --names    # prints names and shapes of torchvision's and timm's own networks
    python3 tests/golden/images.py --load DIR # prints the logits of a folder that timm opens, of images/vit's first samples

Each folder has

- model.safetensors: the state dict in float32, as torchvision or timm names it;
- config.json, for timm's: as its save_for_hf writes it;
- data.safetensors: `input` [steps * samples, channels, height, width] and `target`, and `logits` of the
  first step's samples in evaluation, before training;
- trace.json: options of our model, the norm of each parameter's gradient at the first step, and the
  losses of all steps of AdamW in training mode. All is computed in float64.
"""

import argparse
import json
import pathlib
import sys

import timm
import torch
import torchvision
from safetensors.torch import load_file, save_file
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

WANTED = {"torch": "2.15.0", "torchvision": "0.29.2", "timm": "1.0.31"}
HERE = pathlib.Path(__file__).resolve().parent / "images"
STEPS, SAMPLES, CHANNELS, SIZE, CLASSES = 6, 4, 2, 21, 7
# A batch norm makes some gradients zero but for rounding. With the usual eps AdamW would make whole steps of them:
# torchvision's own float32 run would be 2e-3 away.
RECIPE = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-4, "weight_decay": 0.01}
NETWORKS = {
    "resnet": dict(block="bottleneck", widths=[6, 8], blocks=[2, 1]),
    "wide_resnet": dict(block="bottleneck", widths=[6, 8], blocks=[1, 2], base_width=128),
    "basic": dict(block="basic", widths=[10, 12], blocks=[1, 2]),
    "vit": dict(image=21, patch=7, width=24, layers=2, heads=3),
    "resnext": dict(block="bottleneck", widths=[6, 8], blocks=[1, 2], base_width=32, groups=4),
}
OF_TIMM = ["vit_tiny_patch16_224", "vit_small_patch32_224", "vit_base_patch16_224", "vit_large_patch16_224",
           "vit_huge_patch14_224"]
OWN = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "wide_resnet101_2",
       "resnext50_32x4d", "resnext101_32x8d", "resnext101_64x4d"]


class Small(ResNet):
    """torchvision's ResNet with other widths: its own ones are fixed."""

    def __init__(self, block, widths, blocks, base_width=64, groups=1):
        torch.nn.Module.__init__(self)
        block = {"basic": BasicBlock, "bottleneck": Bottleneck}[block]
        self._norm_layer = torch.nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = 64, 1, groups, base_width
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


def small_vit(image, patch, width, layers, heads):
    """timm's network of the name, with other sizes."""
    return timm.create_model("vit_tiny_patch16_224", img_size=image, patch_size=patch, in_chans=CHANNELS, embed_dim=width,
                             depth=layers, num_heads=heads, num_classes=CLASSES)


def middle_of(key):
    """About what a parameter of one dimension is drawn."""
    return 1.0 if ("bn" in key or "norm" in key) and "weight" in key or "running_var" in key else 0.0


def make(name):
    generator = torch.Generator().manual_seed(list(NETWORKS).index(name) + 1)
    model = small_vit(**NETWORKS[name]) if name == "vit" else Small(**NETWORKS[name])
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.dtype != torch.float32:
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() > 1:
                tensor.copy_(noise * (2 / tensor[0].numel()) ** 0.5)
            else:
                tensor.copy_(middle_of(key) + noise * 0.1)
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    if name == "vit":
        arguments = dict(img_size=SIZE, patch_size=7, in_chans=CHANNELS, embed_dim=24, depth=2, num_heads=3)
        timm.models._hub.save_config_for_hf(model, folder / "config.json", model_args=arguments)
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
    of_kind = dict(kind="vit") if name == "vit" else dict(kind="resnet", stem="imagenet")
    options = dict(**of_kind, channels=CHANNELS, classes=CLASSES, **NETWORKS[name])
    trace = {"network": name, **WANTED, "model": options, "steps": STEPS, "samples": SAMPLES, "optimizer": RECIPE,
             "losses": losses, "gradient_norms": norms}
    save_file({"input": images, "target": target.to(torch.int32), "logits": logits.float()}, folder / "data.safetensors")
    (folder / "trace.json").write_text(json.dumps(trace, indent=1) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}: loss {losses[0]:.6f} to {losses[-1]:.6f}, {size} bytes")
    if size > 250_000:
        sys.exit(f"{name}: found {size} bytes, wanted at most 250000")


def print_names():
    networks = [(name, torchvision.models.get_model(name)) for name in OWN]
    networks += [(name, timm.create_model(name)) for name in OF_TIMM]
    for name, network in networks:
        for key, weight in network.named_parameters():
            print(name, key, list(weight.shape))


def load(folder):
    model = timm.create_model(f"local-dir:{folder}", pretrained=True).double().eval()
    images = load_file(HERE / "vit" / "data.safetensors")["input"][:SAMPLES]
    with torch.no_grad():
        print(json.dumps(model(images.double()).tolist()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="*", help="default: all")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--load", metavar="DIR")
    arguments = parser.parse_args()
    for library, version in WANTED.items():
        if not sys.modules[library].__version__.startswith(version):
            sys.exit(f"{library}: found {sys.modules[library].__version__}, wanted {version}")
    if arguments.names:
        return print_names()
    if arguments.load:
        return load(arguments.load)
    for name in arguments.network or NETWORKS:
        make(name)


if __name__ == "__main__":
    main()
