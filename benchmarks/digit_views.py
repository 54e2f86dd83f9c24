"""What a model is shown of an image: unlike views make unlike mistakes, which is what a combination lives on.

Each takes images in rows of 64 pixels and gives as many rows of features.
"""

from typing import Any

import numpy as np


def pixels(images: Any) -> Any:
    return images


def blurred(images: Any) -> Any:
    """A stroke that is a pixel beside its usual place is still near to it."""
    padded = np.pad(_squares(images), ((0, 0), (1, 1), (1, 1)))
    kernel = np.outer([1, 2, 1], [1, 2, 1]) / 16
    parts = [kernel[y, x] * padded[:, y : y + 8, x : x + 8] for y in range(3) for x in range(3)]
    return np.sum(parts, axis=0).reshape(len(images), -1)


def sums(images: Any) -> Any:
    """How much ink there is in each row, column and diagonal."""
    squares = _squares(images)
    falling, rising = (
        np.stack([np.trace(turned, offset, axis1=1, axis2=2) for offset in range(-7, 8)], axis=1)
        for turned in (squares, squares[:, :, ::-1])
    )
    return np.hstack([squares.sum(axis=2), squares.sum(axis=1), falling, rising]) / 8


def edges(images: Any) -> Any:
    """In which of eight directions the ink grows, in each of sixteen fields."""
    padded = np.pad(_squares(images), ((0, 0), (1, 1), (1, 1)))
    right = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    steep = np.hypot(right, down)
    direction = ((np.arctan2(down, right) + np.pi) / (2 * np.pi) * 8).astype(int) % 8
    fields = [(steep * (direction == it)).reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)) for it in range(8)]
    found = np.stack(fields, axis=1).reshape(len(images), -1)
    return 2 * found / (np.linalg.norm(found, axis=1, keepdims=True) + 1e-9)


VIEWS = {"pixels": pixels, "blurred": blurred, "sums": sums, "edges": edges}


def _squares(images: Any) -> Any:
    return np.asarray(images, dtype=float).reshape(-1, 8, 8)
