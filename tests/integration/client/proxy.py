"""A proxy between a client and a member on real TCP: it delays, holds and cuts connections."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time

CHUNK_BYTES = 16 * 1024


class Proxy:
    """`delay_s` is for each piece, in both directions."""

    def __init__(self, address: str, delay_s: float = 0.0) -> None:
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._delay_s = delay_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._open = threading.Event()
        self._open.set()
        self._cuts: list[int] = []
        self.passed_bytes = 0
        self.connections = 0
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"skerry://{self.address}"
        self._start(self._accept)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def cut_after(self, *sizes_bytes: int) -> None:
        """Cut when so many bytes have gone to clients since the last cut; one cut for each size."""
        with self._lock:
            self._cuts = [*sizes_bytes]
            self.passed_bytes = 0

    def hold(self) -> None:
        """Nothing passes until `release`."""
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def cut(self) -> None:
        """Reset every connection, as a restarted firewall does."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for sock in pair:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.shutdown(socket.SHUT_RDWR)
        for pair in pairs:
            for sock in pair:
                sock.close()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.release()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name="proxy")  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                member = socket.create_connection(self._target)
                with self._lock:
                    self._pairs.append((client, member))
                    self.connections += 1
                self._start(self._pump, client, member, False)
                self._start(self._pump, member, client, True)

    def _pump(self, source: socket.socket, sink: socket.socket, to_client: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(CHUNK_BYTES):
                self._open.wait()
                if self._delay_s:
                    time.sleep(self._delay_s)
                sink.sendall(piece)
                if to_client and self._is_due(len(piece)):
                    self.cut()
                    return
            sink.shutdown(socket.SHUT_WR)

    def _is_due(self, size_bytes: int) -> bool:
        with self._lock:
            self.passed_bytes += size_bytes
            if not self._cuts or self.passed_bytes < self._cuts[0]:
                return False
            self._cuts.pop(0)
            self.passed_bytes = 0
            return True
