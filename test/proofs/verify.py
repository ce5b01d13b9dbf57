"""A third opinion on proofs: Python's standard library alone, from the same texts, Ed25519 from RFC 8032 included.

Reads one case a line ({"proof": base64, "key": text, "head": base64 or null}), writes one digit a line: 1 proven, 0 not.
With a file and a key as arguments it judges that file instead, and exits 0 or 1.
"""
import base64
import functools
import hashlib
import json
import re
import struct
import sys


class No(Exception):
    pass


def must(holds):
    if not holds:
        raise No()


def verdict(proof, key, head):
    try:
        check(decode(proof), key, None if head is None else decode(head))
        return True
    except (No, RecursionError):
        return False


def decode(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise No()


def check(text, key_text, held):
    key = read_key(key_text)
    proof = only(read_json(text), ENTRY + " consistency row branch")
    must(count(proof.get("minimum_index")) == 0)
    must(proof.get("hash_alg") == "sha-256" and proof.get("tree_alg") == "RFC9162")
    size, root = count(proof.get("tree_size")), hash_of(proof.get("root_hash"))
    index, raw = count(proof.get("leaf_index")), b64(proof.get("leaf"))
    must("position" in proof)
    position = None if proof["position"] is None else count(proof["position"])
    head = read_head(string(proof.get("checkpoint")), key)
    must(head == (string(proof.get("origin")), size, root))

    leaf = read_leaf(raw)
    must(leaf["index"] == index < size and h(b"\0", raw) == hash_of(proof.get("leaf_hash")))
    must(climb(index, size, h(b"\0", raw), hashes(proof.get("inclusion_path"))) == root)
    if position is not None:
        must(leaf["position"] <= position < leaf["position"] + leaf["positions"])
    if "row" in proof:
        check_row(record(proof["row"]), leaf, position)
    if "branch" in proof:
        check_branch(record(proof["branch"]), leaf, size, root)
    grown = growth(proof["consistency"], size, root) if "consistency" in proof else None
    if held is None:
        return
    _, old_size, old_root = read_head(held, key)
    if old_size == size:
        return must(old_root == root)
    must(old_size < size)
    if old_size > 0:
        must(grown == (old_size, old_root))


ENTRY = (
    "origin hash_alg tree_alg position leaf_index leaf_hash leaf tree_size root_hash inclusion_path checkpoint minimum_index"
)


def only(record, names):
    must(set(record) <= set(names.split()))
    return record


def check_row(row, leaf, position):
    only(row, "pk row_hash rows_root path salt row")
    must(leaf["kind"] == 3 and position is not None)
    salt, raw = b64(row.get("salt")), b64(row.get("row"))
    must(len(salt) == 16 and leaf["root"] == hash_of(row.get("rows_root")))
    leaf_hash = h(b"\0", salt, raw)
    must(leaf_hash == hash_of(row.get("row_hash")))
    must(climb(position - leaf["position"], leaf["positions"], leaf_hash, hashes(row.get("path"))) == leaf["root"])
    must(read_row(raw) == (leaf["path"], string(row.get("pk"))))


def check_branch(branch, leaf, size, root):
    only(branch, "name source shares statement fork_position fork")
    name, source, shares, statement = (string(branch.get(n)) for n in ("name", "source", "shares", "statement"))
    must(leaf["kind"] == 8 and leaf["branch"] == name and count(branch.get("fork_position")) == leaf["position"])
    lines = statement.split("\n")
    must(len(lines) == 6 and lines[5] == "" and lines[:2] == ["annals/branch/v1", "forked"] and lines[4] == shares)
    must(quoted(lines[2]) == name and quoted(lines[3]) == source)
    try:
        must(h(b"\0", statement.encode()) == leaf["root"])
    except UnicodeEncodeError:
        raise No()
    must(growth(branch.get("fork"), size, root)[0] == leaf["index"])


def quoted(text):
    try:
        return json.loads(text)
    except ValueError:
        raise No()


# Trees.


def h(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def split(n):
    return 1 << ((n - 1).bit_length() - 1)


def climb(m, n, leaf, path):
    if n == 1:
        must(not path)
        return leaf
    must(path)
    k, last = split(n), path[-1]
    if m < k:
        return h(b"\1", climb(m, k, leaf, path[:-1]), last)
    return h(b"\1", last, climb(m - k, n - k, leaf, path[:-1]))


def descend(m, n, whole, old, path):
    if m == n:
        must(len(path) == (0 if whole else 1))
        return (old, old) if whole else (path[0], path[0])
    must(path)
    k, last = split(n), path[-1]
    if m <= k:
        before, after = descend(m, k, whole, old, path[:-1])
        return before, h(b"\1", after, last)
    before, after = descend(m - k, n - k, False, old, path[:-1])
    return h(b"\1", last, before), h(b"\1", last, after)


def growth(value, size, root):
    value = only(record(value), "first second first_root_hash path")
    first, first_root = count(value.get("first")), hash_of(value.get("first_root_hash"))
    must(count(value.get("second")) == size and 1 <= first <= size)
    must(descend(first, size, True, first_root, hashes(value.get("path"))) == (first_root, root))
    return first, first_root


# Notes.


def key_id(name, key):
    return h(name.encode(), b"\n\1", key)[:4]


def read_key(text):
    text = text.strip()
    if re.fullmatch(r"[0-9a-fA-F]{64}", text):
        return None, bytes.fromhex(text)
    match = re.fullmatch(r"([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text)
    must(match)
    typed = b64(match[3])
    must(len(typed) == 33 and typed[0] == 1 and key_id(match[1], typed[1:]).hex() == match[2])
    return match[1], typed[1:]


def read_head(note, key):
    must(all(sign == "\n" or sign >= " " for sign in note) and note.endswith("\n"))
    lines = note[:-1].split("\n")
    must(len(lines) > 4 and lines[3] == "" and all(lines[4:]))
    origin, size, root = lines[:3]
    must(origin and key[0] in (None, origin) and re.fullmatch(r"0|[1-9][0-9]{0,15}", size))
    must(int(size) < 1 << 53)
    head = origin, int(size), hash_of(root)
    signed = False
    for line in lines[4:]:
        parts = line.split(" ")
        must(len(parts) == 3 and parts[0] == "\u2014" and parts[1])
        must(not any((c.isspace() and c != "\x85") or c == "\ufeff" for c in parts[1]))
        data = b64(parts[2])
        try:
            ours = parts[1] == origin and data[:4] == key_id(origin, key[1])
            text = "".join(line + "\n" for line in lines[:3]).encode()
        except UnicodeEncodeError:
            raise No()
        if ours:
            must(genuine(text, data[4:], key[1]))
            signed = True
    must(signed and (head[1] > 0 or head[2] == h()))
    return head


# Ed25519: RFC 8032 section 5.1, in extended coordinates.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    u, v = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, i = v - u, d - c, d + c, v + u
    return e * f % P, g * i % P, f * g % P, e * i % P


def times(n, point):
    total = (0, 1, 1, 0)
    while n:
        if n & 1:
            total = add(total, point)
        point, n = add(point, point), n >> 1
    return total


def point_of(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


@functools.lru_cache(maxsize=None)
def genuine(text, signature, key):
    if len(signature) != 64:
        return False
    a, r, s = point_of(key), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % L
    left, right = times(s, BASE), add(r, times(k, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# Bytes.


def read_leaf(data):
    must(len(data) >= 126 and data[0] == 1 and 1 <= data[1] <= 11)
    index, position, positions = struct.unpack_from("<QQI", data, 2)
    must(index < 1 << 53 and position < 1 << 53)
    at = 126

    def text(optional):
        nonlocal at
        if optional:
            must(at < len(data) and data[at] <= 1)
            at += 1
            if data[at - 1] == 0:
                return None
        must(at + 4 <= len(data))
        end = at + 4 + struct.unpack_from("<I", data, at)[0]
        must(end <= len(data))
        found, at = decode(data[at + 4 : end]), end
        return found

    branch, _, path, *_ = [text(optional) for optional in (False, True, True, False, False, True, False, False)]
    must(at == len(data))
    return dict(kind=data[1], index=index, position=position, positions=positions, root=data[62:94], branch=branch, path=path)


def read_row(data):
    at = 0

    def take(size):
        nonlocal at
        must(at + size <= len(data))
        at += size
        return data[at - size : at]

    def number(size):
        return int.from_bytes(take(size), "big")

    def text():
        return decode(take(number(4)))

    def flag():
        value = number(1)
        must(value <= 1)
        return value == 1

    must(number(1) == 1)
    path = text() if flag() else None
    for _ in range(3):
        text()
    take(8)
    if flag():
        text()
    must(number(1) <= 2)
    pk = text()
    for _ in range(2):
        if flag():
            take(8)
    for _ in range(number(4)):
        must(number(8) < 1 << 53)
    while at < len(data):
        decode(take(number(2)))
        kind = number(1)
        must(kind <= 6)
        if kind in (0, 5):
            text()
        elif kind == 6:
            take(number(4) * 4)
        else:
            take(1 if kind == 3 else 8)
    return path, pk


# JSON.


def read_json(text):
    def once(pairs):
        must(len({name for name, _ in pairs}) == len(pairs))
        return dict(pairs)

    def never(_):
        raise No()

    try:
        return record(json.loads(text, object_pairs_hook=once, parse_constant=never))
    except ValueError:
        raise No()


def record(value):
    must(type(value) is dict)
    return value


def string(value):
    must(type(value) is str)
    return value


def count(value):
    if type(value) is float:
        must(value.is_integer())
        value = int(value)
    must(type(value) is int and 0 <= value < 1 << 53)
    return value


def b64(value):
    try:
        data = base64.b64decode(string(value), validate=True)
    except ValueError:
        raise No()
    must(base64.b64encode(data).decode() == value)
    return data


def hash_of(value):
    data = b64(value)
    must(len(data) == 32)
    return data


def hashes(value):
    must(type(value) is list and len(value) <= 63)
    return [hash_of(item) for item in value]


if __name__ == "__main__":
    if len(sys.argv) == 3:
        with open(sys.argv[1], "rb") as file:
            sys.exit(0 if verdict(file.read(), sys.argv[2], None) else 1)
    for line in filter(str.strip, sys.stdin):
        case = json.loads(line)
        old = None if case["head"] is None else base64.b64decode(case["head"])
        print(1 if verdict(base64.b64decode(case["proof"]), case["key"], old) else 0)
