#!/usr/bin/env python3
"""Copies a library and zeroes its device code for other GPU architectures than one.

strip_fatbin.py IN.so OUT.so ARCH     ARCH as in sm_ARCH: 90

The layout stays as it is, so that nothing has to be relinked; zeroes compress to nothing. A fat binary
is a header (magic, version, header size, size) and entries (kind, attributes, header size, size, ...,
architecture at byte 28); kind 2 is machine code, kind 1 PTX.
"""

import mmap
import shutil
import struct
import subprocess
import sys

MAGIC = 0xBA55ED50
MACHINE_CODE = 2


def sections(library):
    for line in subprocess.check_output(["readelf", "-SW", library], text=True).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1] in (".nv_fatbin", "__nv_relfatbin"):
            yield int(fields[4], 16), int(fields[5], 16)


def strip(memory, begin, size, arch):
    """Bytes of device code that are kept, and that were zeroed."""
    kept = zeroed = 0
    at, end = begin, begin + size
    while at < end - 16:
        if struct.unpack_from("<I", memory, at)[0] != MAGIC:
            at += 8
            continue
        header, length = struct.unpack_from("<HQ", memory, at + 6)
        entry, last = at + header, at + header + length
        while entry < last:
            kind, _, entry_header, payload = struct.unpack_from("<HHIQ", memory, entry)
            if not 32 <= entry_header <= 4096:
                raise SystemExit(f"an entry at {entry:#x} is not as expected")
            first = entry + entry_header
            if kind == MACHINE_CODE and struct.unpack_from("<I", memory, entry + 28)[0] == arch:
                kept += payload
            else:
                memory[first : first + payload] = bytes(payload)
                zeroed += payload
            entry = first + payload
        at = (last + 7) & ~7
    return kept, zeroed


def main(source, target, arch):
    shutil.copyfile(source, target)
    kept = zeroed = 0
    with open(target, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        for begin, size in sections(source):
            counts = strip(memory, begin, size, int(arch))
            kept, zeroed = kept + counts[0], zeroed + counts[1]
    print(
        f"{source}: {kept / 1e6:.0f} MB of device code for sm_{arch} kept, {zeroed / 1e6:.0f} MB zeroed"
    )
    if not kept:
        raise SystemExit(f"{source} has no code for sm_{arch}")


if __name__ == "__main__":
    main(*sys.argv[1:])
