"""Safetensors files, good ones and what can become of them, from a seed."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}

# What a value in JSON may be replaced with.
TOKENS = [
    "null", "true", "-0", "-1", "0", "00", "1.0", "1e1", "1E400", "4.", "NaN", "Infinity", "[]", "{}",
    "[[]]", "[[[[1]]]]", '""', '"F32"', '"f32"', '"F8"', '"\\ud800"', '"\\u0046\\u00332"', "[0]",
    "[0,0]", "[1,2,3]", "[0,-0]", "[0.0,4]", '["4"]', "[null]", "[4294967296,4294967296]",
    "[4294967296,0,4294967296,4294967296]", "[9223372036854775808]", "[9223372036854775807,2]",
    "[18446744073709551616]", "[0,18446744073709551615]", "[" + ",".join(["1"] * 65) + "]",
    "[" + ",".join(["1"] * 64) + "]", "{\"a\":{\"b\":{}}}", "[0,4,8]", "{\"F32\":null}",
]
FURTHER = ['"strides":[1]', '"x":1e400', '"x":{"y":{"z":[]}}', '"x":"\\udc00"', '"dtype":"F32"',
           '"shape":[]', '"x":1,"x":2', '"__metadata__":{}']
PIECES = [b" ", b"\n", b"\t", b"\0", b",", b":", b'"', b"{", b"}", b"[", b"]", b"\\", b"0", b"9", b"-",
          b".", b"e", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"/**/", b"\\u0000",
          b"\x7f", b"\xc2\x85", b"\xc3\xa4", b"a"]
NAMES = ["", "a", "lm_head.weight", "model.layers.0.w", "\u00e4", "\U0001f600", "a b", 'q"q', "b\\s",
         "n" * 1024, "n" * 1025, "tab\t", "del\x7f", "c1\x85", "nul\0", "__metadata__x"]


def packed(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def members(self) -> tuple[list[tuple[str, dict[str, str]]], int]:
        """Tensors that cover the data: names, and fields as JSON texts."""
        entries = []
        offset = 0
        for number in range(self.random.choice([0, 1, 1, 2, 2, 3, 8])):
            dtype = self.random.choice(list(BITS))
            shape = [self.random.choice([0, 1, 1, 2, 3, 4, 8]) for _ in range(self.random.randrange(4))]
            elements = 1
            for dimension in shape:
                elements *= dimension
            if elements * BITS[dtype] % 8 != 0:
                shape.append(8)
                elements *= 8
            end = offset + elements * BITS[dtype] // 8
            name = self.random.choice([f"t{number}", f"t{number}", self.random.choice(NAMES) + str(number)])
            entries.append((name, {"dtype": json.dumps(dtype), "shape": json.dumps(shape),
                                   "data_offsets": json.dumps([offset, end])}))
            offset = end
        if self.random.random() < 0.3:
            self.random.shuffle(entries)
        return entries, offset

    def text(self, entries: list[tuple[str, dict[str, str]]], metadata: str | None) -> str:
        comma, colon = self.random.choice([(",", ":"), (",", ":"), (", ", ": "), (" ,\n", "\t:")])
        parts = [] if metadata is None else ['"__metadata__"' + colon + metadata]
        for name, fields in entries:
            inside = [f'"{field}"{colon}{value}' for field, value in fields.items()]
            if self.random.random() < 0.2:
                self.random.shuffle(inside)
            quoted = json.dumps(name, ensure_ascii=self.random.random() < 0.5)
            parts.append(quoted + colon + "{" + comma.join(inside) + "}")
        return "{" + comma.join(parts) + "}"

    def metadata(self) -> str | None:
        return self.random.choice([None, None, "{}", '{"format":"pt"}', '{"a":"b","c":"\\u00e4"}'])

    def good(self) -> bytes:
        entries, size = self.members()
        text = self.text(entries, self.metadata()).encode()
        text += b" " * self.random.choice([0, 0, 1, 7])
        return packed(text, self.random.randbytes(size))

    def field_changed(self) -> bytes:
        entries, size = self.members()
        if entries:
            fields = self.random.choice(entries)[1]
            field = self.random.choice(list(fields))
            action = self.random.randrange(4)
            if action == 0:
                del fields[field]
            elif action == 1:
                numbers = json.loads(fields[self.random.choice(["shape", "data_offsets"])])
                if numbers:
                    numbers[self.random.randrange(len(numbers))] += self.random.choice([-1, 1, 2**62, 2**63])
                fields[self.random.choice(["shape", "data_offsets"])] = json.dumps(numbers)
            else:
                fields[field] = self.random.choice(TOKENS)
        return packed(self.text(entries, self.metadata()).encode(), bytes(size))

    def field_added(self) -> bytes:
        entries, size = self.members()
        text = self.text(entries, self.metadata())
        places = [at for at in range(2, len(text)) if text[at] == "}"]
        if places:
            at = self.random.choice(places)
            text = text[:at] + "," + self.random.choice(FURTHER) + text[at:]
        return packed(text.encode(), bytes(size))

    def metadata_changed(self) -> bytes:
        entries, size = self.members()
        token = self.random.choice([*TOKENS, '{"a":null}', '{"a":1}', '{"a":"b","a":"c"}', '{"a":{}}',
                                    '{"":""}', '{"a":"\\u0000"}'])
        return packed(self.text(entries, token).encode(), bytes(size))

    def member_twice(self) -> bytes:
        entries, size = self.members()
        if entries:
            name, fields = self.random.choice(entries)
            fields = dict(fields)
            if self.random.random() < 0.5:
                fields[self.random.choice(list(fields))] = self.random.choice(TOKENS)
            entries.insert(self.random.randrange(len(entries) + 1), (name, fields))
        text = self.text(entries, self.metadata())
        return packed(text.encode(), bytes(size))

    def bytes_changed(self) -> bytes:
        """Anything, anywhere in the header; the length field is kept right, or not."""
        file = self.good()
        header, data = bytearray(file[8:8 + struct.unpack("<Q", file[:8])[0]]), b""
        data = file[8 + len(header):]
        before = len(header)
        for _ in range(self.random.choice([1, 1, 1, 2, 4])):
            at = self.random.randrange(len(header) + 1)
            action = self.random.randrange(4)
            if action == 0:
                header[at:at] = self.random.choice(PIECES)
            elif action == 1:
                del header[at:at + self.random.choice([1, 1, 2, 9])]
            elif action == 2:
                header[at:at + 1] = self.random.choice(PIECES)
            elif at < len(header):
                header[at] ^= 1 << self.random.randrange(8)
        if self.random.random() < 0.1:
            return struct.pack("<Q", before) + bytes(header) + data
        return packed(bytes(header), data)

    def ends_changed(self) -> bytes:
        """White space around the object; data too short or too long."""
        entries, size = self.members()
        text = self.text(entries, self.metadata()).encode()
        blanks = [b"", b"", b" ", b"\n", b"\t ", b"\0", b"\r\n", b"\x0b", b"\xc2\xa0", b"{}", b"x"]
        text = self.random.choice(blanks) + text + self.random.choice(blanks)
        return packed(text, bytes(max(0, size + self.random.choice([0, 0, 0, -1, 1, 8]))))

    def length_changed(self) -> bytes:
        file = self.good()
        length = struct.unpack("<Q", file[:8])[0]
        other = self.random.choice([0, 1, 2, length - 1, length + 1, len(file), len(file) - 7, 2**64 - 1,
                                    2**63, 100_000_000, 100_000_001, 2**64 - 8])
        return (struct.pack("<Q", other % 2**64) + file[8:])[:self.random.choice([len(file), 7, 8, 12])]

    def zero_beside_large(self) -> bytes:
        """No elements, and a product of the other dimensions that may not fit."""
        large = [self.random.choice([1, 2, 2**31, 2**32, 2**62, 2**63 - 1]) for _ in range(3)]
        large.insert(self.random.randrange(4), 0)
        fields = {"dtype": '"F32"', "shape": json.dumps(large), "data_offsets": "[0,0]"}
        return packed(self.text([("a", fields)], None).encode(), b"")

    def any(self) -> tuple[str, bytes]:
        kinds: list[Callable[[], bytes]] = [
            self.good, self.field_changed, self.field_added, self.metadata_changed, self.member_twice,
            self.bytes_changed, self.bytes_changed, self.ends_changed, self.length_changed, self.zero_beside_large,
        ]
        kind = self.random.choice(kinds)
        return kind.__name__, kind()
