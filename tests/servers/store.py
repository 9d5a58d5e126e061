"""An S3 server as a process of the tests: rclone shows the folders of a directory as buckets."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.servers.found import free_port, tool, wait_for

KEY, SECRET = "site-key", "site-secret/with+signs="


class Store:
    """What is written to `folder/<bucket>` is in the bucket. Requests are logged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder.with_suffix(".log")
        self._program = tool("rclone")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        listen = ("--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}")
        fresh = ("--dir-cache-time", "0", "--vfs-cache-mode", "off", "--no-cleanup", "--config", "/dev/null", "-vv")
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [self._program, "serve", "s3", *listen, *fresh, self.folder], stdout=log, stderr=log
            )
        wait_for(self.port, self._process, self.log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def bucket(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path
