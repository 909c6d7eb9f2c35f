"""Runs a command of the application in a fork, for a program that starts it as ``python -m app``.

It is called by its path and without ``site``, so that it starts in a few milliseconds; see ``tests/forked.py``.
"""

import json
import os
import signal
import socket
import sys

origin, *arguments = sys.argv[1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    asking.connect(f"\0{origin}")
    socket.send_fds(asking, [json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])  # noqa: PTH109
    pid = int(asking.recv(32))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    for stream in range(3):
        os.close(stream)  # or their reader would wait for our end too
    code = int(asking.recv(32))
os._exit(code if code >= 0 else 128 - code)
