"""Part of a tensor, as safetensors' ``get_slice`` gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Slice:
    """A tensor that is made when a part of it is taken."""

    def __init__(self, tensor: Callable[[], Any], dtype: str, shape: Sequence[int]) -> None:
        self._tensor, self._dtype, self._shape = tensor, dtype, list(shape)

    def get_shape(self) -> list[int]:
        return list(self._shape)

    def get_dtype(self) -> str:
        return self._dtype

    def __getitem__(self, part: Any) -> Any:
        return self._tensor()[part]
