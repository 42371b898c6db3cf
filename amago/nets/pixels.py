"""Images and grids of ids → feature vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from amago.nets.place import draw
from amago.nets.settings import EncoderSettings
from amago.types import ObsSpec

EMBEDDING_DIM = 8
"""Numbers per id where one-hots would be too wide: texts, large grids, many categories."""
_CHANNELS = (16, 32, 32)
"""Channels after each halving of an image; the last one serves all further halvings."""
_IMAGE_FEATURES = 64
"""Features that an image contributes to a row."""
_SMALLEST_MAP = 8
"""Convolutions halve an image until its longer side is at most this."""


def _random_shift(images: UInt8[Tensor, "M C H W"], reach: int) -> UInt8[Tensor, "M C H W"]:
    """Every image moved by up to `reach` pixels per axis, its edges repeated [DrQ].

    Rows draw their shifts from torch's global generator, which a run seeds every epoch.
    """
    count, _, height, width = images.shape
    offsets = draw(
        lambda s: torch.randint(-reach, reach + 1, s, device=images.device), (2, count, 1), dim=1
    )
    rows = (torch.arange(height, device=images.device) + offsets[0]).clamp(0, height - 1)
    columns = (torch.arange(width, device=images.device) + offsets[1]).clamp(0, width - 1)
    index = torch.arange(count, device=images.device)[:, None, None]
    shifted = images[index, :, rows[:, :, None], columns[:, None, :]]  # [M, H, W, C]
    return shifted.permute(0, 3, 1, 2)


class _SmallTrunk(nn.Sequential):
    """3×3 convolutions of stride 2."""

    def __init__(self, channels: int, widths: list[int]) -> None:
        layers: list[nn.Module] = []
        for width in widths:
            layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1), nn.LeakyReLU()]
            channels = width
        super().__init__(*layers)


class _ResidualTrunk(nn.Sequential):
    """Per halving a convolution, a pooling and two residual blocks [IMPALA, the large one]."""

    def __init__(self, channels: int, widths: list[int]) -> None:
        layers: list[nn.Module] = []
        for width in widths:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.MaxPool2d(3, 2, padding=1)]
            layers += [_ResidualBlock(width), _ResidualBlock(width)]
            channels = width
        super().__init__(*layers, nn.LeakyReLU())


class _ResidualBlock(nn.Module):
    """Two 3×3 convolutions whose result is added to their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Float[Tensor, "M C H W"]) -> Float[Tensor, "M C H W"]:
        change: Tensor = self.second(F.leaky_relu(self.first(F.leaky_relu(x))))
        return x + change


class ImageEncoder(nn.Module):
    """One image, or one large grid of ids, through a trunk to `output_dim` features."""

    def __init__(self, spec: ObsSpec, settings: EncoderSettings) -> None:
        super().__init__()
        self.spec = spec
        height, width, channels = _sizes(spec)
        self.embedding = None
        if spec.kind == "category":
            self.embedding = nn.Embedding(spec.size, EMBEDDING_DIM)
            channels *= EMBEDDING_DIM
        # A sixteenth of the shorter side at most, or small frames would lose their content.
        self.reach = min(settings.random_shift, min(height, width) // 16)
        count = 0
        while max(height, width) > _SMALLEST_MAP:
            height, width, count = (height + 1) // 2, (width + 1) // 2, count + 1
        widths = [_CHANNELS[min(i, len(_CHANNELS) - 1)] for i in range(count)]
        trunk = _ResidualTrunk if settings.cnn == "residual" else _SmallTrunk
        self.trunk = trunk(channels, widths)
        self.out = nn.Linear(widths[-1] * height * width, _IMAGE_FEATURES)
        self.norm = nn.LayerNorm(_IMAGE_FEATURES)
        self.output_dim = _IMAGE_FEATURES

    def forward(self, values: Tensor, dtype: torch.dtype) -> Float[Tensor, "M F"]:
        """Images uint8 or grids of ids [M, ...] → features; images are shifted in training."""
        x = _channels_first(values, self.spec)
        if self.embedding is not None:
            x = self.embedding(x.long()).permute(0, 1, 4, 2, 3).flatten(1, 2)
        else:
            if self.training and self.reach:
                x = _random_shift(x, self.reach)
            x = x.to(dtype) / 255.0 - 0.5
        features: Tensor = self.norm(self.out(self.trunk(x).flatten(1)))
        return features


def _channels_first(values: Tensor, spec: ObsSpec) -> Tensor:
    """[M, ...] as [M, C, H, W], whichever way the environment lays its images out."""
    if spec.channels_axis is None:
        return values[:, None]
    return values if spec.channels_axis == 0 else values.permute(0, 3, 1, 2)


def _sizes(spec: ObsSpec) -> tuple[int, int, int]:
    """Height, width, channels."""
    if spec.channels_axis is None:
        return (*spec.shape, 1)  # type: ignore[return-value]
    if spec.channels_axis == 0:
        return spec.shape[1], spec.shape[2], spec.shape[0]
    return spec.shape[0], spec.shape[1], spec.shape[2]
