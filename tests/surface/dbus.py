# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small D-Bus client: little-endian, blocking, one connection. Enough to call,
to listen, and to send what a library would not."""

import os
import socket
import struct
import time

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
ALIGN = {"y": 1, "b": 4, "u": 4, "i": 4, "t": 8, "x": 8, "d": 8, "s": 4, "o": 4, "g": 1, "a": 4, "(": 8, "{": 8,
         "v": 1, "h": 4, "n": 2, "q": 2}
BASIC = {"y": "B", "b": "I", "u": "I", "i": "i", "t": "Q", "x": "q", "d": "d", "h": "I", "n": "h", "q": "H"}


class Error(Exception):
    def __init__(self, name, text):
        super().__init__("%s: %s" % (name, text))
        self.name, self.text = name, text


def split(signature):
    """The complete types of a signature."""
    types, at = [], 0
    while at < len(signature):
        start = at
        while signature[at] == "a":
            at += 1
        if signature[at] in "({":
            depth = 0
            while True:
                depth += signature[at] in "({"
                depth -= signature[at] in ")}"
                at += 1
                if depth == 0:
                    break
        else:
            at += 1
        types.append(signature[start:at])
    return types


class Writer:
    def __init__(self):
        self.data = bytearray()

    def pad(self, n):
        self.data += b"\0" * (-len(self.data) % n)

    def put(self, kind, value):
        c = kind[0]
        self.pad(ALIGN[c])
        if c in BASIC:
            self.data += struct.pack("<" + BASIC[c], value)
        elif c in "so":
            raw = value if isinstance(value, bytes) else value.encode()
            self.data += struct.pack("<I", len(raw)) + raw + b"\0"
        elif c == "g":
            self.data += bytes([len(value)]) + value.encode() + b"\0"
        elif c == "v":
            self.put("g", value[0])
            self.put(value[0], value[1])
        elif c == "a":
            at = len(self.data)
            self.data += b"\0\0\0\0"
            self.pad(ALIGN[kind[1]])
            start = len(self.data)
            for item in value.items() if isinstance(value, dict) else value:
                self.put(kind[1:], item)
            self.data[at:at + 4] = struct.pack("<I", len(self.data) - start)
        else:
            for t, item in zip(split(kind[1:-1]), value):
                self.put(t, item)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def get(self, kind):
        c = kind[0]
        self.at += -self.at % ALIGN[c]
        if c in BASIC:
            value, = struct.unpack_from("<" + BASIC[c], self.data, self.at)
            self.at += struct.calcsize(BASIC[c])
            return bool(value) if c == "b" else value
        if c in "so":
            n = self.get("u")
            self.at += n + 1
            return self.data[self.at - n - 1:self.at - 1].decode()
        if c == "g":
            n = self.data[self.at]
            self.at += n + 2
            return self.data[self.at - n - 1:self.at - 1].decode()
        if c == "v":
            return self.get(self.get("g"))
        if c == "a":
            end = self.get("u")
            self.at += -self.at % ALIGN[kind[1]]
            end += self.at
            items = []
            while self.at < end:
                items.append(self.get(kind[1:]))
            return dict(items) if kind[1] == "{" else items
        return tuple(self.get(t) for t in split(kind[1:-1]))


class Message:
    def __init__(self, header, body, fds):
        r = Reader(header)
        _, self.type, self.flags, _ = (r.get("y") for _ in range(4))
        r.get("u")
        self.serial = r.get("u")
        fields = dict(r.get("a(yv)"))
        self.path, self.interface, self.member, self.error = (fields.get(k) for k in (1, 2, 3, 4))
        self.reply_to, self.sender, self.fds = fields.get(5), fields.get(7), fds
        b = Reader(body)
        self.body = [b.get(t) for t in split(fields.get(8, ""))]


def marshal(kind, serial, fields, signature="", body=()):
    w = Writer()
    for t, value in zip(split(signature), body):
        w.put(t, value)
    h = Writer()
    for value in (ord("l"), kind, 0, 1):
        h.put("y", value)
    h.put("u", len(w.data))
    h.put("u", serial)
    if signature:
        fields = list(fields) + [(8, ("g", signature))]
    h.put("a(yv)", fields)
    h.pad(8)
    return bytes(h.data + w.data)


class Bus:
    def __init__(self, path, timeout):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.serial, self.buffer, self.fds, self.waiting = 0, b"", [], []
        self.sock.sendall(b"\0AUTH EXTERNAL %s\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n" % str(os.getuid()).encode().hex().encode())
        for _ in range(2):
            while b"\r\n" not in self.buffer:
                self.buffer += self.sock.recv(4096)
            line, self.buffer = self.buffer.split(b"\r\n", 1)
            if not line.startswith((b"OK", b"AGREE")):
                raise Error("auth", line.decode())
        self.name = self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")[0]

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.sock.close()

    def send(self, destination, path, interface, member, signature="", *body):
        """Sends a call and returns its serial."""
        self.serial += 1
        fields = [(1, ("o", path)), (3, ("s", member)), (6, ("s", destination))]
        if interface:
            fields.append((2, ("s", interface)))
        self.sock.sendall(marshal(CALL, self.serial, fields, signature, body))
        return self.serial

    def need(self, n):
        while len(self.buffer) < n:
            data, fds, _, _ = socket.recv_fds(self.sock, 65536, 8)
            if not data:
                raise EOFError("the bus closed the connection")
            self.buffer += data
            self.fds += fds

    def read(self):
        self.need(16)
        body, _, fields = struct.unpack_from("<III", self.buffer, 4)
        header = 16 + fields + -fields % 8
        self.need(header + body)
        m = Message(self.buffer[:header], self.buffer[header:header + body], self.fds)
        self.buffer = self.buffer[header + body:]
        return m

    def answer(self, serial):
        early = [m for m in self.waiting if m.reply_to == serial]
        while True:
            m = early.pop() if early else self.read()
            if m.reply_to != serial:
                self.waiting.append(m)
            elif m.type == ERROR:
                raise Error(m.error, m.body[0] if m.body else "")
            else:
                return m.body

    def call(self, *args):
        return self.answer(self.send(*args))

    def owner(self, name):
        return self.driver("NameHasOwner", "s", name)[0]

    def driver(self, member, *args):
        return self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", member, *args)

    def listen(self, rule):
        self.driver("AddMatch", "s", rule)

    def signal(self, member, timeout=15, want=lambda m: True):
        """The next signal of this name that is wanted."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            m = self.waiting.pop(0) if self.waiting else self.read()
            if m.type == SIGNAL and m.member == member and want(m):
                return m
        raise TimeoutError(member)


class Stub:
    def __init__(self, bus, name, path, interface):
        self.bus, self.name, self.path, self.interface = bus, name, path, interface

    def __call__(self, member, signature="", *body):
        return self.bus.call(self.name, self.path, self.interface, member, signature, *body)

    def get(self, name):
        return self.bus.call(self.name, self.path, "org.freedesktop.DBus.Properties", "Get", "ss", self.interface, name)[0]

    def all(self):
        return self.bus.call(self.name, self.path, "org.freedesktop.DBus.Properties", "GetAll", "s", self.interface)[0]

    def set(self, name, signature, value):
        self.bus.call(self.name, self.path, "org.freedesktop.DBus.Properties", "Set", "ssv", self.interface, name,
                      (signature, value))
