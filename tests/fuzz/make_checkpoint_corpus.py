"""Writes corpus/checkpoint: one small file for each kind that the reader must accept or refuse.

A file that begins with a brace is a header alone (see checkpoint_fuzz.cpp); the others are whole.
What a fuzzer finds is added beside them by hand, under the name of what was wrong.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

GOOD = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}


def whole(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def one(**fields: object) -> bytes:
    return text({"a": {**GOOD, **fields}})


def raw(field: str, value: str) -> bytes:
    """The good tensor with one field's value as it stands."""
    parts = {"dtype": '"U8"', "shape": "[4]", "data_offsets": "[0,4]", field: value}
    inside = ",".join(f'"{name}":{part}' for name, part in parts.items())
    return ('{"a":{' + inside + "}}").encode()


def two(first: list[int], second: list[int]) -> bytes:
    return text({
        name: {"dtype": "U8", "shape": [place[1] - place[0]], "data_offsets": place}
        for name, place in (("a", first), ("b", second))
    })


def cases() -> dict[str, bytes]:
    good = text({"a": GOOD})
    files = {
        "good": whole(good, b"data"),
        "good-metadata": text({"__metadata__": {"format": "pt"}, "a": GOOD}),
        "good-scalar": one(dtype="F32", shape=[]),
        "good-zero-dimension": one(shape=[3, 0], data_offsets=[0, 0]),
        "good-escaped-name": good.replace(b'"a"', b'"\\u0061\\/\\ud83d\\ude00"'),
        "good-spaces-behind": good + b"    ",
        "good-spaces-within": json.dumps({"a": GOOD}, indent=1).encode(),
        "good-empty": whole(b"{}"),
        "good-shared-place": text({
            "z": {"dtype": "F16", "shape": [0], "data_offsets": [4, 4]}, "a": GOOD,
            "y": {"dtype": "I64", "shape": [2, 0], "data_offsets": [0, 0]}}),
        "length-short": b"\x02\0\0\0",
        "length-zero": whole(b"", length=0),
        "length-all-ones": whole(b"{}", length=2**64 - 1),
        "length-size-minus-7": whole(good, b"data", length=len(good) + 5),
        "length-past-limit": whole(b"{}", length=100_000_001),
        "byte-order-mark": whole(b"\xef\xbb\xbf{}"),
        "space-in-front": whole(b" {}"),
        "nul-behind": b"{}\0\0",
        "newline-behind": b"{}\n",
        "brace-behind-nul": b"{}\0}",
        "array-at-top": whole(b"[]"),
        "two-values": b"{}{}",
        "trailing-comma": good[:-1] + b",}",
        "deep": b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
        "name-twice": good[:-1] + b"," + good[1:],
        "name-twice-escaped": good[:-1] + b"," + good[1:].replace(b'"a"', b'"\\u0061"'),
        "field-twice": raw("dtype", '"U8","dtype":"U8"'),
        "metadata-null": text({"__metadata__": None}),
        "metadata-number": text({"__metadata__": {"a": 1}}),
        "metadata-nested": text({"__metadata__": {"a": {"b": "c"}}}),
        "metadata-name-twice": b'{"__metadata__":{"k":"","\\u006b":""}}',
        "metadata-colon-behind-text": b'{"__metadata__":{"a":"":x[n]0,4]}}',
        "dtype-colon-behind-text": raw("dtype", '"U8":[1]'),
        "bad-utf8": good.replace(b"a", b"\xc0\xaf", 1),
        "bad-utf8-surrogate": good.replace(b"a", b"\xed\xa0\x80", 1),
        "lone-surrogate": good.replace(b'"a"', b'"\\ud800"'),
        "lone-low-surrogate": good.replace(b'"a"', b'"\\udc00"'),
        "control-in-name": good.replace(b'"a"', b'"a\\n"'),
        "c1-in-name": good.replace(b'"a"', b'"a\xc2\x85"'),
        "bare-control": good.replace(b'"a"', b'"a\n"'),
        "empty-name": good.replace(b'"a"', b'""'),
        "long-name": good.replace(b'"a"', b'"' + b"n" * 1025 + b'"'),
        "no-dtype": text({"a": {"shape": [4], "data_offsets": [0, 4]}}),
        "no-shape": text({"a": {"dtype": "U8", "data_offsets": [0, 4]}}),
        "no-offsets": text({"a": {"dtype": "U8", "shape": [4]}}),
        "further-field": one(strides=[1]),
        "further-nested": one(x={"y": "z"}),
        "further-huge-number": raw("shape", '[4],"x":1e400'),
        "further-tiny-number": raw("shape", '[4],"x":-1.5E-400'),
        "further-long-exponent": raw("shape", '[4],"x":-1.5E-' + "4" * 60),
        "not-an-object": text({"a": ["U8", [4], [0, 4]]}),
        "dtype-lower-case": one(dtype="u8"),
        "dtype-unknown": one(dtype="F8"),
        "dtype-number": one(dtype=3),
        "dtype-null": one(dtype=None),
        "dtype-object": one(dtype={"U8": None}),
        "dtype-escaped": raw("dtype", '"\\u00558"'),
        "shape-text": one(shape="4"),
        "shape-of-65": one(shape=[1] * 64 + [4]),
        "shape-of-64": one(shape=[1] * 63 + [4]),
        "offsets-three": one(data_offsets=[0, 4, 4]),
        "offsets-one": one(data_offsets=[0]),
        "offsets-swapped": one(data_offsets=[4, 0]),
        "offsets-past-data": whole(one(data_offsets=[0, 5], shape=[5]), b"data"),
        "offsets-huge": one(shape=[2**63 - 1], data_offsets=[0, 2**63 - 1]),
        "product-wraps": one(shape=[2**32, 2**32], data_offsets=[0, 0]),
        "product-wraps-beside-zero": one(shape=[2**32, 0, 2**32], data_offsets=[0, 0]),
        "bits-wrap": one(dtype="F64", shape=[2**61], data_offsets=[0, 0]),
        "size-off-by-one": one(shape=[3]),
        "f4-odd": one(dtype="F4", shape=[7]),
        "f4-even": one(dtype="F4", shape=[8]),
        "f6": one(dtype="F6_E2M3", shape=[4], data_offsets=[0, 3]),
        "overlap": two([0, 4], [2, 6]),
        "overlap-identical": two([0, 4], [0, 4]),
        "overlap-zero-inside": two([0, 4], [2, 2]),
        "hole-in-front": two([1, 4], [4, 8]),
        "hole-in-the-middle": two([0, 4], [5, 8]),
        "out-of-order": two([4, 8], [0, 4]),
        "trailing-byte": whole(good, b"data+"),
        "missing-byte": whole(good, b"dat"),
        "no-tensor-but-data": whole(b"{}", b"data"),
        "zero-past-the-end": text({"a": {"dtype": "U8", "shape": [0], "data_offsets": [7, 7]}}),
        "two-zeros-past-the-end": text({
            name: {"dtype": "U8", "shape": [0], "data_offsets": [7, 7]} for name in "ab"}),
    }
    for name, value in {
        "float": "4.0", "exponent": "4e0", "negative": "-4", "negative-zero": "-0", "leading-zero":
        "04", "past-63-bits": str(2**63), "past-64-bits": str(2**64), "garbage": "4a", "null": "null",
        "text": '"4"', "nested": "[4]", "missing": "", "comma": "4,",
    }.items():
        files[f"dimension-{name}"] = raw("shape", f"[{value}]")
        files[f"offset-{name}"] = raw("data_offsets", f"[0,{value}]")
    return files


def main() -> int:
    folder = Path(__file__).resolve().parent / "corpus" / "checkpoint"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in cases().items():
        (folder / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
