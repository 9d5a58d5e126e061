"""Unlinked files that hold the bodies of spooled batches."""

from __future__ import annotations

import os
import tempfile


class Segment:
    """One file for many bodies; its owner closes it when the last of them (`live`) is let go."""

    def __init__(self, directory: str) -> None:
        # Never has a name that outlives this call: a killed member leaves no file behind.
        self._file = tempfile.TemporaryFile(buffering=0, dir=directory, prefix="skerry-spool-")  # noqa: SIM115
        self.size_bytes = 0
        self.charged_bytes = 0
        self.live = 0

    def write(self, body: memoryview) -> int:
        """Append a body and return its offset. After an OSError the segment is as before."""
        written = 0
        while written < len(body):
            written += os.pwrite(self._file.fileno(), body[written:], self.size_bytes + written)
        offset = self.size_bytes
        self.size_bytes += written
        self.live += 1
        return offset

    def read(self, offset: int, length: int) -> bytes:
        """Read a body back; shorter than `length` only when the file is."""
        parts: list[bytes] = []
        missing = length
        while missing:
            part = os.pread(self._file.fileno(), missing, offset + length - missing)
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._file.close()
