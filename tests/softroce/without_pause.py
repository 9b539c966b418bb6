"""Copies of programs whose `pause` instructions are no-ops.

Under QEMU's emulation a `pause` leaves the translated code and takes QEMU's lock: 0.9 us where hardware takes some ten
nanoseconds, and far more when the host has taken the core from who holds the lock.
"""

import pathlib
import re
import shutil
import subprocess


def text_section(program):
    """Address and place in the file of the code."""
    listed = subprocess.run(["readelf", "--wide", "--sections", program], check=True, capture_output=True, text=True).stdout
    found = re.search(r"\.text\s+PROGBITS\s+([0-9a-f]+)\s+([0-9a-f]+)", listed)
    return int(found[1], 16), int(found[2], 16)


def copy_without_pause(program, folder):
    folder.mkdir(parents=True, exist_ok=True)
    address, place = text_section(program)
    code = subprocess.run(["objdump", "--disassemble", "--section=.text", program], check=True, capture_output=True, text=True)
    data = bytearray(pathlib.Path(program).read_bytes())
    for found in re.findall(r"^\s*([0-9a-f]+):\s+f3 90\s+pause", code.stdout, re.MULTILINE):
        at = int(found, 16) - address + place
        if data[at:at + 2] != b"\xf3\x90":
            raise ValueError(f"{program}: no pause at {found}")
        data[at] = 0x66  # xchg %ax,%ax: as long, and nothing
    copy = folder / pathlib.Path(program).name
    copy.write_bytes(data)
    shutil.copymode(program, copy)
