/**
 * A second opinion on proofs, written from the texts (RFC 9162 sections 2.1.1, 2.1.3.1 and 2.1.4.1, C2SP signed notes, the
 * drawings of leaf and row) in another style than the verifier's: trees by the recursive definitions read backwards, JSON
 * by descent, signatures by tweetnacl. Says yes or no, never why.
 */
import { createHash } from 'node:crypto';
import nacl from 'tweetnacl';

class No extends Error {}

const must = (holds: boolean): void => {
  if (!holds) throw new No();
};

export function naiveVerdict(proof: Uint8Array, key: string, head: Uint8Array | null): boolean {
  try {
    check(decode(proof), key, head === null ? null : decode(head));
    return true;
  } catch (error) {
    if (error instanceof No) return false;
    throw error;
  }
}

function decode(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('utf8');
  must(Buffer.from(text, 'utf8').equals(Buffer.from(bytes)));
  return text;
}

function check(text: string, keyText: string, held: string | null): void {
  const key = readKey(keyText);
  const proof = new Json(text).document();
  only(proof, `${entryMembers} consistency row branch`);
  must(count(proof.get('minimum_index')) === 0n);
  must(proof.get('hash_alg') === 'sha-256' && proof.get('tree_alg') === 'RFC9162');
  const size = count(proof.get('tree_size'));
  const root = hash(proof.get('root_hash'));
  const leafIndex = count(proof.get('leaf_index'));
  const leafBytes = base64(proof.get('leaf'));
  const position = proof.get('position') === null ? null : count(proof.get('position'));

  const leaf = readLeaf(leafBytes);
  must(leaf.index === leafIndex && H(0, leafBytes) === hash(proof.get('leaf_hash')));
  must(leafIndex < size && climb(leafIndex, size, H(0, leafBytes), hashes(proof.get('inclusion_path'))) === root);
  if (position !== null) must(position >= leaf.position && position < leaf.position + leaf.positions);

  if (proof.has('row')) {
    const row = object(proof.get('row'));
    only(row, 'pk row_hash rows_root path salt row');
    must(leaf.kind === 3 && position !== null);
    const bytes = base64(row.get('row'));
    const salt = base64(row.get('salt'));
    must(salt.length === 16);
    const rowHash = H(0, salt, bytes);
    const nth = position! - leaf.position;
    must(rowHash === hash(row.get('row_hash')) && leaf.root === hash(row.get('rows_root')));
    must(climb(nth, leaf.positions, rowHash, hashes(row.get('path'))) === leaf.root);
    const said = readRow(bytes);
    must(said.pk === row.get('pk') && said.path === leaf.path);
  }
  if (proof.has('branch')) {
    const branch = object(proof.get('branch'));
    only(branch, 'name source shares statement fork_position fork');
    const [name, source, shares, statement] = ['name', 'source', 'shares', 'statement'].map((field) => string(branch.get(field)));
    must(leaf.kind === 8 && leaf.branch === name && count(branch.get('fork_position')) === leaf.position);
    must(statement === `annals/branch/v1\nforked\n${JSON.stringify(name)}\n${JSON.stringify(source)}\n${shares}\n`);
    must(H(0, Buffer.from(statement!)) === leaf.root);
    must(growth(branch.get('fork'), size, root).first === leaf.index);
  }
  const grown = proof.has('consistency') ? growth(proof.get('consistency'), size, root) : null;
  // Last, because it costs most: whoever gets here with a bad signature has got everything else right.
  const head = readHead(string(proof.get('checkpoint')), key);
  must(head.size === size && head.root === root && head.origin === string(proof.get('origin')));
  if (held === null) return;
  const old = readHead(held, key);
  if (old.size === size) return must(old.root === root);
  must(old.size < size);
  if (old.size > 0n) must(grown !== null && grown.first === old.size && grown.root === old.root);
}

const entryMembers =
  'origin hash_alg tree_alg position leaf_index leaf_hash leaf tree_size root_hash inclusion_path checkpoint minimum_index';

function only(members: Members, names: string): void {
  for (const name of members.keys()) must(names.split(' ').includes(name));
}

// Trees. Hashes are lower-case hex.

function H(prefix: number, ...parts: readonly Uint8Array[]): string {
  const hasher = createHash('sha256').update(Uint8Array.of(prefix));
  for (const part of parts) hasher.update(part);
  return hasher.digest('hex');
}

const join = (left: string, right: string): string => H(1, Buffer.from(left + right, 'hex'));

const emptyRoot = createHash('sha256').digest('hex');

/** Largest power of two below n. */
function split(n: bigint): bigint {
  let k = 1n;
  while (k * 2n < n) k *= 2n;
  return k;
}

/** PATH(m, D_n) read backwards: its last hash is the sibling nearest to the root. */
function climb(m: bigint, n: bigint, leaf: string, path: readonly string[]): string {
  if (n === 1n) {
    must(path.length === 0);
    return leaf;
  }
  must(path.length > 0);
  const k = split(n);
  const last = path[path.length - 1]!;
  const rest = path.slice(0, -1);
  return m < k ? join(climb(m, k, leaf, rest), last) : join(last, climb(m - k, n - k, leaf, rest));
}

/** SUBPROOF(m, D_n, b) read backwards: the roots over m and over n leaves. */
function descend(m: bigint, n: bigint, whole: boolean, old: string, path: readonly string[]): readonly [string, string] {
  if (m === n) {
    must(path.length === (whole ? 0 : 1));
    return whole ? [old, old] : [path[0]!, path[0]!];
  }
  must(path.length > 0);
  const k = split(n);
  const last = path[path.length - 1]!;
  const rest = path.slice(0, -1);
  if (m <= k) {
    const [before, after] = descend(m, k, whole, old, rest);
    return [before, join(after, last)];
  }
  const [before, after] = descend(m - k, n - k, false, old, rest);
  return [join(last, before), join(last, after)];
}

function growth(value: Value, size: bigint, root: string): { first: bigint; root: string } {
  const given = object(value);
  only(given, 'first second first_root_hash path');
  const first = count(given.get('first'));
  const firstRoot = hash(given.get('first_root_hash'));
  must(count(given.get('second')) === size && first >= 1n && first <= size);
  const [before, after] = descend(first, size, true, firstRoot, hashes(given.get('path')));
  must(before === firstRoot && after === root);
  return { first, root: firstRoot };
}

// Notes.

interface Key {
  readonly name: string | null;
  readonly bytes: Buffer;
}

function idOf(name: string, bytes: Buffer): string {
  return createHash('sha256').update(`${name}\n`).update(Uint8Array.of(1)).update(bytes).digest('hex').slice(0, 8);
}

function readKey(text: string): Key {
  const parts = text.trim().split('+');
  if (parts.length === 1) {
    must(/^[0-9a-fA-F]{64}$/.test(parts[0]!));
    return { name: null, bytes: Buffer.from(parts[0]!, 'hex') };
  }
  const name = parts[0]!;
  const typed = base64(parts.slice(2).join('+'));
  must(name !== '' && !/\s/.test(name) && typed.length === 33 && typed[0] === 1);
  must(idOf(name, typed.subarray(1)) === parts[1]);
  return { name, bytes: typed.subarray(1) };
}

const signatures = new Map<string, boolean>();

function genuine(text: string, signature: Buffer, key: Buffer): boolean {
  if (signature.length !== 64) return false;
  const asked = `${text}\n${signature.toString('hex')}\n${key.toString('hex')}`;
  let known = signatures.get(asked);
  if (known === undefined) {
    known = nacl.sign.detached.verify(Buffer.from(text), signature, key);
    signatures.set(asked, known);
  }
  return known;
}

function readHead(note: string, key: Key): { origin: string; size: bigint; root: string } {
  for (const sign of note) must(sign === '\n' || sign.codePointAt(0)! >= 0x20);
  must(note.endsWith('\n'));
  const lines = note.slice(0, -1).split('\n');
  const gap = lines.lastIndexOf('');
  // Three lines, the empty one, and what is signed by whom.
  must(gap === 3 && lines.length > 4);
  const [origin, sizeText, rootText] = lines as [string, string, string];
  must(origin !== '' && (key.name === null || key.name === origin));
  must(/^(0|[1-9][0-9]*)$/.test(sizeText) && sizeText.length <= 16);
  const size = BigInt(sizeText);
  must(size < 2n ** 53n);
  const root = hash(rootText);
  const text = `${origin}\n${sizeText}\n${rootText}\n`;
  let signed = false;
  for (const line of lines.slice(4)) {
    const parts = line.split(' ');
    must(parts.length === 3 && parts[0] === '—' && parts[1] !== '' && !/\s/.test(parts[1]!));
    const bytes = base64(parts[2]!);
    if (parts[1] !== origin || bytes.subarray(0, 4).toString('hex') !== idOf(origin, key.bytes)) continue;
    must(genuine(text, bytes.subarray(4), key.bytes));
    signed = true;
  }
  must(signed && (size > 0n || root === emptyRoot));
  return { origin, size, root };
}

// Bytes.

function readLeaf(bytes: Buffer): {
  kind: number;
  index: bigint;
  position: bigint;
  positions: bigint;
  root: string;
  branch: string;
  path: string | null;
} {
  must(bytes.length >= 126 && bytes[0] === 1 && bytes[1]! >= 1 && bytes[1]! <= 11);
  const [index, position] = [bytes.readBigUInt64LE(2), bytes.readBigUInt64LE(10)];
  must(index < 2n ** 53n && position < 2n ** 53n);
  const positions = BigInt(bytes.readUInt32LE(18));
  const root = bytes.subarray(62, 94).toString('hex');
  let at = 126;
  const text = (optional: boolean): string | null => {
    if (optional) {
      must(at < bytes.length && bytes[at]! <= 1);
      if (bytes[at++] === 0) return null;
    }
    must(at + 4 <= bytes.length);
    const size = bytes.readUInt32LE(at);
    must(at + 4 + size <= bytes.length);
    at += 4 + size;
    return decode(bytes.subarray(at - size, at));
  };
  const branch = text(false)!;
  text(true);
  const path = text(true);
  for (const optional of [false, false, true, false, false]) text(optional);
  must(at === bytes.length);
  return { kind: bytes[1]!, index, position, positions, root, branch, path };
}

function readRow(bytes: Buffer): { path: string | null; pk: string } {
  let at = 0;
  const skip = (size: number): Buffer => {
    must(at + size <= bytes.length);
    at += size;
    return bytes.subarray(at - size, at);
  };
  const u8 = (): number => skip(1)[0]!;
  const text = (): string => decode(skip(skip(4).readUInt32BE()));
  const flag = (): boolean => {
    const value = u8();
    must(value <= 1);
    return value === 1;
  };
  must(u8() === 1);
  const path = flag() ? text() : null;
  for (let i = 0; i < 3; i++) text();
  skip(8);
  if (flag()) text();
  must(u8() <= 2);
  const pk = text();
  if (flag()) skip(8);
  if (flag()) skip(8);
  for (let closes = skip(4).readUInt32BE(); closes > 0; closes--) must(skip(8).readBigUInt64BE() < 2n ** 53n);
  while (at < bytes.length) {
    decode(skip(skip(2).readUInt16BE()));
    const type = u8();
    must(type <= 6);
    if (type === 0 || type === 5) text();
    else if (type === 6) skip(skip(4).readUInt32BE() * 4);
    else skip(type === 3 ? 1 : 8);
  }
  return { path, pk };
}

// JSON.

type Value = undefined | null | boolean | number | string | readonly Value[] | Members;
type Members = ReadonlyMap<string, Value>;

function object(value: Value): Members {
  must(value instanceof Map);
  return value as Members;
}

function string(value: Value): string {
  must(typeof value === 'string');
  return value as string;
}

function count(value: Value): bigint {
  must(typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= Number.MAX_SAFE_INTEGER);
  return BigInt(value as number);
}

function base64(value: Value): Buffer {
  const text = string(value);
  must(text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text));
  const bytes = Buffer.from(text, 'base64');
  must(bytes.toString('base64') === text);
  return bytes;
}

function hash(value: Value): string {
  const bytes = base64(value);
  must(bytes.length === 32);
  return bytes.toString('hex');
}

function hashes(value: Value): readonly string[] {
  must(Array.isArray(value) && value.length <= 63);
  return (value as readonly Value[]).map(hash);
}

class Json {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): Members {
    const value = object(this.#value(0));
    this.#blank();
    must(this.#at === this.#text.length);
    return value;
  }

  #value(depth: number): Value {
    this.#blank();
    must(depth < 1000);
    switch (this.#text[this.#at]) {
      case '{': {
        const members = new Map<string, Value>();
        this.#list('{', '}', () => {
          this.#blank();
          const name = this.#string();
          this.#blank();
          this.#expect(':');
          must(!members.has(name));
          members.set(name, this.#value(depth + 1));
        });
        return members;
      }
      case '[': {
        const items: Value[] = [];
        this.#list('[', ']', () => items.push(this.#value(depth + 1)));
        return items;
      }
      case '"':
        return this.#string();
      default:
        return this.#word();
    }
  }

  #list(open: string, close: string, item: () => void): void {
    this.#expect(open);
    this.#blank();
    if (this.#text[this.#at] === close) {
      this.#at++;
      return;
    }
    for (;;) {
      item();
      this.#blank();
      if (this.#text[this.#at] === close) break;
      this.#expect(',');
    }
    this.#at++;
  }

  #string(): string {
    const found = this.#match(/"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    for (let i = 0; i < found.length; i++) must(found.charCodeAt(i) >= 0x20);
    return JSON.parse(found) as string;
  }

  #word(): Value {
    const found = this.#match(/true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    if (found === 'null') return null;
    if (found === 'true' || found === 'false') return found === 'true';
    return Number(found);
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    must(found !== undefined);
    this.#at += found!.length;
    return found!;
  }

  #expect(sign: string): void {
    must(this.#text[this.#at] === sign);
    this.#at++;
  }

  #blank(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'x')) this.#at++;
  }
}
