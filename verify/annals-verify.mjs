#!/usr/bin/env node
/**
 * Checks a proof of Annals without Annals: one file, no dependency, nothing but SHA-256 and Ed25519 of Node 20.16 or later.
 * Whoever runs it trusts this text, the log's public key, and nobody else.
 *
 *   node annals-verify.mjs <proof file> --key <key of the log> [--head <file of a checkpoint kept from earlier>]
 *
 * The same for the receipt of an erasure, which its own key has signed; with the salt that was told to whoever asked for the
 * erasure, and the subject, it says whether the receipt is of that subject:
 *
 *   node annals-verify.mjs <receipt file> --key <key of the log> --erasure-key <hex> [--salt <hex> --subject <file>]
 *
 * Exit code: 0 everything that the file claims is proven (and printed in words), 1 something is not, 2 wrong usage.
 *
 * The chain of reasoning, from the inside out:
 *
 *   row    ── SHA-256(0x00 | salt | row) ── path up the entry's own tree of rows ── rows root, which stands in the leaf
 *   leaf   ── SHA-256(0x00 | leaf)       ── path up the log's tree of entries    ── root, which stands in the checkpoint
 *   checkpoint ── Ed25519 signature of the log's key over its name, the number of entries, and that root
 *
 * The log can't change an entry, or a row in it, without changing that root; and it can't sign a second root of as many
 * entries, or one that does not contain an earlier one, without leaving two signatures that convict it.
 *
 * Sources: RFC 9162 section 2.1 (trees and paths), c2sp.org/signed-note, c2sp.org/tlog-checkpoint.
 */

/**
 * SHA-256, HMAC-SHA-256 and the check of an Ed25519 signature, over Uint8Arrays: those of Node. In a browser the page gives its
 * own, so that it runs this very text.
 */
let { sha256Of, hmacOf, isSigned } = primitivesOfNode() ?? {};
export function givePrimitives(primitives) {
  ({ sha256Of, hmacOf, isSigned } = primitives);
}

function primitivesOfNode() {
  const crypto = ofNode('node:crypto');
  const spki = fromHex('302a300506032b6570032100');
  return crypto && {
    sha256Of: (bytes) => new Uint8Array(crypto.createHash('sha256').update(bytes).digest()),
    hmacOf: (key, bytes) => new Uint8Array(crypto.createHmac('sha256', key).update(bytes).digest()),
    isSigned: (bytes, signature, key) =>
      crypto.verify(null, bytes, crypto.createPublicKey({ key: concat([spki, key]), format: 'der', type: 'spki' }), signature),
  };
}

function ofNode(module) {
  return globalThis.process?.getBuiltinModule?.(module);
}

/** Thrown for everything that is not proven. Its message says what, for a reader. */
export class NotProven extends Error {}
function demand(holds, otherwise) {
  if (!holds) throw new NotProven(otherwise);
}
const wellFormed = (holds, otherwise) => demand(holds, `malformed: ${otherwise}`);
/** Whatever a file makes go wrong here is a verdict on the file. */
const judged = (judge) => (...given) => {
  try {
    return judge(...given);
  } catch (error) {
    throw error instanceof NotProven ? error : new NotProven(`malformed: ${error.message}`);
  }
};

/**
 * All of it, top down. `proofText` is the file, `keyText` the log's key, `heldText` a checkpoint kept from earlier or null.
 * Returns sentences that are proven; throws NotProven.
 */
export const verifyProof = judged((proofText, keyText, heldText = null) => {
  const key = parseKey(keyText);
  const proof = parseProof(proofText);
  const proven = [];
  // 1. The checkpoint is signed by the key that we trust, in the name that we expect.
  const head = openCheckpoint(proof.checkpoint, key);
  demand(proof.tree_size === head.size, 'tree_size is not what the checkpoint says');
  demand(same(proof.root_hash, head.root), 'root_hash is not what the checkpoint says');
  demand(proof.origin === head.origin, 'origin is not what the checkpoint says');
  proven.push(`the log ${head.origin} signed a tree of ${head.size} entries with root ${toHex(head.root)}`);
  // 2. The leaf is what stands at its place in that tree.
  const leafHash = sha256(leafPrefix, proof.leaf);
  demand(same(proof.leaf_hash, leafHash), 'leaf_hash is not the hash of the leaf');
  const root = rootFromPath(leafHash, proof.leaf_index, head.size, proof.inclusion_path);
  demand(root !== null && same(root, head.root), 'the entry is not in the signed tree: its path leads to another root');
  const leaf = decodeLeaf(proof.leaf);
  demand(leaf.leaf === proof.leaf_index, 'the leaf gives itself another number than its place in the tree');
  proven.push(`entry ${leaf.leaf} is in it: ${leafInWords(leaf)}`);
  if (proof.position !== null) {
    const covered = proof.position >= leaf.position && proof.position < leaf.position + leaf.positions;
    demand(covered, `the entry does not cover position ${proof.position}`);
  }
  // 3. The row is in the entry.
  if (proof.row) proven.push(verifyRow(proof.row, leaf, proof.position));
  // 4. The branch was forked by this entry, and the log before the fork is the beginning of the log of now.
  if (proof.branch) proven.push(verifyBranch(proof.branch, leaf, head));
  // 5. The tree of an earlier size is the beginning of this one.
  if (proof.consistency) {
    verifyPrefix(proof.consistency, head);
    const { first, first_root_hash: firstRoot } = proof.consistency;
    proven.push(`its first ${first} entries are unchanged since their tree had root ${toHex(firstRoot)}`);
  }
  // 6. The checkpoint that we kept is one of this very log.
  if (heldText !== null) proven.push(verifyHeld(openCheckpoint(heldText, key), head, proof.consistency));
  return proven;
});

// ---- Receipts of erasures: a DSSE envelope over RFC 8785 JSON ------------------------------------------------------------
const receiptType = 'application/vnd.annals.erasure-receipt+json';

/** `erasureKeyText` are 64 hex digits; `told` is {salt, subject}, or null where nobody says whose receipt it is to be. */
export const verifyReceipt = judged((envelopeText, keyText, erasureKeyText, told = null) => {
  const key = parseKey(keyText);
  const erasureKey = parseKey(erasureKeyText).bytes;
  const envelope = record(parseJson(envelopeText), 'the envelope', { payloadType: string, payload: bytes, signatures: list });
  demand(envelope.payloadType === receiptType, 'the envelope holds something else than the receipt of an erasure');
  // 1. The receipt is signed by the key for erasures.
  const signed = concat([toUtf8(`DSSEv1 ${receiptType.length} ${receiptType} ${envelope.payload.length} `), envelope.payload]);
  const genuine = envelope.signatures
    .map((signature) => record(signature, 'a signature', { keyid: string, sig: bytes }))
    .some(({ keyid, sig }) => keyid === toHex(sha256(erasureKey)).slice(0, 32) && sig.length === 64 && isSigned(signed, sig, erasureKey));
  demand(genuine, 'the receipt is not signed by this key');
  // 2. What it says is what the log's entry commits to.
  const text = utf8(envelope.payload);
  const receipt = record(parseJson(text), 'the receipt', receiptMembers);
  const { complete_seq: position, issued_at: issuedAt, proof, ...statement } = parseJson(text);
  demand(canonical({ ...statement, complete_seq: position, issued_at: issuedAt, proof }) === text, 'the receipt is not canonical JSON');
  const { leaf, index, path, note } = parseTlogProof(receipt.proof);
  const head = openCheckpoint(note, key);
  const root = rootFromPath(sha256(leafPrefix, leaf), index, head.size, path);
  demand(root !== null && same(root, head.root), 'the entry is not in the signed tree: its path leads to another root');
  const entry = decodeLeaf(leaf);
  demand(entry.leaf === index && entry.kind === 'erasure', 'the proof is of another entry than an erasure');
  demand(entry.position === receipt.complete_seq, 'complete_seq is not the position in the leaf');
  demand(receipt.intent_seq < receipt.complete_seq, 'the erasure ended before it was intended');
  demand(instant(entry.time) === receipt.issued_at, 'issued_at is not the time in the leaf');
  const digest = toHex(sha256(toUtf8(canonical(statement))));
  const committed = ['annals/erasure/v1', 'completed', JSON.stringify(receipt.receipt_id), digest].map((line) => `${line}\n`).join('');
  demand(same(sha256(leafPrefix, toUtf8(committed)), entry.rowsRoot), 'the log commits to another receipt than this');
  demand(receipt.verification.residual_hits === 0, 'the scan after the erasure found something');
  const proven = [
    `the receipt ${shown(receipt.receipt_id)} is signed by the erasure key ${toHex(erasureKey)}`,
    `the log ${head.origin} signed a tree of ${head.size} entries with root ${toHex(head.root)}`,
    `entry ${entry.leaf} is in it and commits to the receipt: ${leafInWords(entry)}`,
    `erased from position ${receipt.intent_seq} on: ${countsInWords(receipt.counts)}; keys destroyed: ${receipt.keys_destroyed.length}`,
  ];
  // 3. It is the receipt of this subject.
  if (told !== null) {
    const salt = checked(/^[0-9a-f]{64}$/.test(told.salt), fromHex(told.salt), 'the salt is not 64 hex digits');
    const commitment = toHex(hmacOf(salt, toUtf8(told.subject)));
    demand(commitment === receipt.subject_commitment, 'the receipt is of another subject, or the salt of another receipt');
    proven.push('the subject is the one that was given');
  }
  return proven;
});

function countsInWords(counts) {
  return Object.entries(counts).map(([name, count]) => `${count} ${shown(name)}`).join(', ');
}

/** c2sp.org/tlog-proof: the leaf as extra data, its number, the path up the tree, and the checkpoint. */
function parseTlogProof(proof) {
  const split = proof.indexOf('\n\n');
  const [first, extra, place, ...path] = proof.slice(0, Math.max(0, split)).split('\n');
  demand(first === 'c2sp.org/tlog-proof@v1' && /^extra \S+$/.test(extra) && /^index \d{1,15}$/.test(place), 'the proof is no tlog-proof');
  return {
    leaf: bytes(extra.slice('extra '.length), 'the leaf'),
    index: Number(place.slice('index '.length)),
    path: hashes(path, 'the path'),
    note: proof.slice(split + 2),
  };
}

/** RFC 8785: members in the order of their UTF-16 units, no blanks. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

// ---- Rows and branches ------------------------------------------------------------------------------------------------
function verifyRow(claim, leaf, position) {
  demand(leaf.kind === 'rows' && position !== null, 'an entry of this kind holds no rows');
  demand(claim.salt.length === 16, 'the salt is not of 16 bytes');
  const rowHash = sha256(leafPrefix, claim.salt, claim.row);
  demand(same(claim.row_hash, rowHash), 'row_hash is not the hash of the salt and the row');
  demand(same(claim.rows_root, leaf.rowsRoot), 'rows_root is not the one in the leaf');
  const root = rootFromPath(rowHash, position - leaf.position, leaf.positions, claim.path);
  demand(root !== null && same(root, leaf.rowsRoot), 'the row is not in the entry: its path leads to another root');
  const row = decodeRow(claim.row);
  demand(row.pk === claim.pk, 'pk is not the key in the row');
  demand(row.path === leaf.path, 'the row names another organisation path than its leaf');
  const nth = position - leaf.position;
  return `row ${nth + 1} of ${leaf.positions} in it, position ${position}, believed from ${instant(leaf.time + BigInt(nth))}: ${rowInWords(row)}`;
}

function verifyBranch(claim, leaf, head) {
  demand(leaf.kind === 'branch', 'the entry forks no branch');
  const statement = ['annals/branch/v1', 'forked', JSON.stringify(claim.name), JSON.stringify(claim.source), claim.shares];
  demand(claim.statement === statement.map((line) => `${line}\n`).join(''), 'the statement does not say what the proof claims');
  demand(same(sha256(leafPrefix, toUtf8(claim.statement)), leaf.rowsRoot), 'the leaf commits to another statement');
  demand(leaf.branch === claim.name, 'the leaf is of another branch');
  demand(claim.fork_position === leaf.position, 'fork_position is not the position in the leaf');
  demand(claim.fork.first === leaf.leaf, 'the tree at the fork is not the one before the entry');
  verifyPrefix(claim.fork, head);
  const lineage = `the branch ${shown(claim.name)} descends from ${shown(claim.source)} below position ${leaf.position}`;
  const then = `${claim.fork.first} entries with root ${toHex(claim.fork.first_root_hash)}`;
  return `${lineage} and shares ${shown(claim.shares)} with it; the log of then, ${then}, is the beginning of the log of now`;
}

// ---- Growth -----------------------------------------------------------------------------------------------------------
function verifyPrefix({ first, second, first_root_hash: firstRoot, path }, head) {
  demand(second === head.size, 'the proof of growth ends at another size than the checkpoint');
  demand(isPrefix(first, firstRoot, second, head.root, path), `the tree of ${first} entries is not shown to be the beginning`);
}

function verifyHeld(held, head, growth) {
  const evidence = 'KEEP BOTH FILES: two signed heads that contradict each other convict the log';
  if (held.size === head.size) {
    demand(same(held.root, head.root), `the log has signed two different trees of ${held.size} entries. ${evidence}`);
    return `it is the very tree of the checkpoint that you hold`;
  }
  const older = `the checkpoint that you hold has ${held.size} entries`;
  demand(held.size < head.size, `${older}, more than this proof: ask for tree_size=${held.size} or later`);
  if (held.size > 0) {
    demand(growth && growth.first === held.size, `${older}: ask for a proof with from=${held.size}`);
    demand(same(held.root, growth.first_root_hash), `${older} and another root than those in this tree. ${evidence}`);
  }
  return `it contains all ${held.size} entries of the checkpoint that you hold, unchanged`;
}

// ---- Trees: RFC 9162 section 2.1. A path of 63 hashes would be of more leaves than can be counted here. -------------------

const leafPrefix = Uint8Array.of(0);
const nodePrefix = Uint8Array.of(1);
const sha256 = (...parts) => sha256Of(concat(parts));
const parent = (left, right) => sha256(nodePrefix, left, right);
const half = (n) => Math.floor(n / 2);

/** Section 2.1.3.2: the root that a leaf's hash and its path give in a tree of `size` leaves; null if they don't fit. */
export function rootFromPath(leafHash, index, size, path) {
  if (index >= size || path.length > 63) return null;
  let [node, last, root] = [index, size - 1, leafHash];
  for (const sibling of path) {
    if (last === 0) return null;
    if (node % 2 === 1 || node === last) {
      root = parent(sibling, root);
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)];
    } else {
      root = parent(root, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 ? root : null;
}

/** Section 2.1.4.2: whether the tree of `first` leaves is the beginning of that of `second`. */
export function isPrefix(first, firstRoot, second, secondRoot, path) {
  if (first < 1 || first > second || path.length > 63) return false;
  if (first === second) return path.length === 0 && same(firstRoot, secondRoot);
  let [node, last] = [first - 1, second - 1];
  while (node % 2 === 1) [node, last] = [half(node), half(last)];
  // The path leaves out the old root itself where that is a node of the new tree.
  const [start, ...rest] = node === 0 ? [firstRoot, ...path] : path;
  if (start === undefined) return false;
  let [oldHash, newHash] = [start, start];
  for (const sibling of rest) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      [oldHash, newHash] = [parent(sibling, oldHash), parent(sibling, newHash)];
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)];
    } else {
      newHash = parent(newHash, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && same(oldHash, firstRoot) && same(newHash, secondRoot);
}

// ---- Signatures: c2sp.org/signed-note ---------------------------------------------------------------------------------
/** `<name>+<key hash in hex>+<base64 of 0x01 and the key>`, or 64 hex digits: the key alone, for a log of any name. */
export function parseKey(text) {
  const trimmed = text.trim();
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return { name: null, bytes: fromHex(trimmed) };
  const [, name, id, encoded] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(trimmed) ?? [];
  demand(name !== undefined, 'the key is neither <name>+<hash>+<key> nor 64 hex digits');
  const typed = bytes(encoded, 'the key');
  demand(typed[0] === 1 && typed.length === 33, 'the key is not an Ed25519 key');
  const key = { name, bytes: typed.subarray(1) };
  demand(toHex(keyHash(name, key.bytes)) === id, 'the hash in the key is not that of its name and bytes');
  return key;
}
const keyHash = (name, bytes) => sha256(toUtf8(`${name}\n`), Uint8Array.of(1), bytes).subarray(0, 4);

/** Lines of keys that we don't know are ignored; one that has our key's name and hash and does not verify spoils the note. */
export function openCheckpoint(note, key) {
  demand(![...note].some((sign) => sign < ' ' && sign !== '\n'), 'the checkpoint holds control characters');
  const split = note.lastIndexOf('\n\n');
  demand(split >= 0 && note.endsWith('\n'), 'the checkpoint has no signatures');
  const text = note.slice(0, split + 1);
  const lines = text.split('\n');
  demand(lines.length === 4, 'the checkpoint is not of three lines');
  const [origin, sizeText, rootText] = lines;
  demand(origin !== '' && (key.name === null || origin === key.name), 'the checkpoint is of another log than the key');
  demand(/^(0|[1-9]\d{0,15})$/.test(sizeText) && Number.isSafeInteger(Number(sizeText)), 'the checkpoint has no proper size');
  const head = { origin, size: Number(sizeText), root: hash(rootText, 'the root in the checkpoint') };
  let verified = false;
  for (const line of note.slice(split + 2, -1).split('\n')) {
    const [, name, encoded] = /^— (\S+) (\S+)$/.exec(line) ?? [];
    demand(name !== undefined, 'the checkpoint has a line that is no signature');
    const marked = bytes(encoded, 'a signature');
    if (name !== origin || !same(marked.subarray(0, 4), keyHash(origin, key.bytes))) continue;
    const genuine = marked.length === 68 && isSigned(toUtf8(text), marked.subarray(4), key.bytes);
    demand(genuine, 'the signature is not genuine');
    verified = true;
  }
  demand(verified, 'the checkpoint is not signed by this key');
  demand(head.size > 0 || same(head.root, sha256()), 'a tree of no entries has another root');
  return head;
}

// ---- Leaves and rows: bytes to facts ----------------------------------------------------------------------------------
const kinds = [null, 'genesis', 'seal', 'rows', 'removal', 'type', 'token', 'access', 'branch', 'exhibit', 'view', 'receipt', 'policy', 'tenant', 'agreement', 'erasure', 'retention', 'redaction', 'batch', 'edge', 'embedding', 'judgement', 'identity', 'model', 'rule', 'job', 'run', 'quarantine', 'search'];
const ops = ['', ', left over from an overlapped version', ', ended'];
/** Little-endian: format, kind, leaf, position, positions, time, three hashes, then texts of u32 length. */
function decodeLeaf(bytes) {
  const read = new Reader(bytes, true);
  demand(read.u8() === 1, 'the leaf is of an unknown format');
  const kind = kinds[read.u8()];
  demand(kind, 'the leaf is of an unknown kind');
  const [leaf, position, positions, time] = [read.u64(), read.u64(), read.u32(), read.i64()];
  read.take(32); // The hash of the leaf before: the chain that the log keeps besides the tree.
  const rowsRoot = read.take(32);
  read.take(32); // The digest of the sealed body.
  const [branch, , path, principal, door, purpose] = [read.text(), read.maybe('text'), read.maybe('text'), read.text(), read.text(), read.maybe('text')];
  read.text(); // Correlation id.
  read.text(); // Digest of the policies in force.
  demand(read.done(), 'bytes after the leaf');
  return { kind, leaf, position, positions, time, rowsRoot, branch, path, principal, door, purpose };
}

/** Big-endian: format, path, type, provenance, op, key, valid bounds, closed positions, then cells by name. */
function decodeRow(bytes) {
  const read = new Reader(bytes, false);
  demand(read.u8() === 1, 'the row is of an unknown format');
  const [path, type, source, method, confidence] = [read.maybe('text'), read.text(), read.text(), read.text(), read.f64()];
  const [derivedFrom, op, pk, from, to] = [read.maybe('text'), ops[read.u8()], read.text(), read.maybe('i64'), read.maybe('i64')];
  demand(op !== undefined, 'the row is of an unknown kind');
  for (let closes = read.u32(); closes > 0; closes--) read.u64();
  const values = [];
  while (!read.done()) {
    const name = read.text(read.u16());
    const cell = cells[read.u8()];
    demand(cell, 'a cell is of an unknown type');
    values.push([name, cell(read)]);
  }
  return { path, type, source, method, confidence, derivedFrom, op, pk, from, to, values };
}

class Reader {
  constructor(bytes, little) {
    Object.assign(this, { all: bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), at: 0, little });
  }
  take(count) {
    wellFormed(this.at + count <= this.all.length, 'bytes end early');
    return this.all.subarray(this.at, (this.at += count));
  }
  number(kind, size) {
    this.take(size);
    return this.view[`get${kind}`](this.at - size, this.little);
  }
  u8 = () => this.number('Uint8', 1);
  u16 = () => this.number('Uint16', 2);
  u32 = () => this.number('Uint32', 4);
  i64 = () => this.number('BigInt64', 8);
  f64 = () => this.number('Float64', 8);
  u64 = () => whole(Number(this.number('BigUint64', 8)), 'a number in the bytes');
  text = (size = this.u32()) => utf8(this.take(size));
  maybe(method) {
    const there = this.u8();
    demand(there <= 1, 'a flag that is neither 0 nor 1');
    return there === 1 ? this[method]() : null;
  }
  done = () => this.at === this.all.length;
}

/** How a cell is read, by the number of its type: string, integer, number, boolean, timestamp, JSON, vector. */
const text = (read) => read.text();
const dimensions = (read) => `${read.take(read.u32() * 4).length / 4} dimensions`;
const cells = [text, (read) => read.i64(), (read) => read.f64(), (read) => read.u8() === 1, (read) => instant(read.i64()), text, dimensions];

// ---- Files ------------------------------------------------------------------------------------------------------------
function checked(holds, value, otherwise) {
  wellFormed(holds, otherwise);
  return value;
}
const string = (value, what) => checked(typeof value === 'string', value, `${what} is not a text`);
const whole = (value, what) => checked(Number.isSafeInteger(value) && value >= 0, value, `${what} is not a whole number below 2^53`);
const hash = (value, what) => checked(bytes(value, what).length === 32, bytes(value, what), `${what} is not a hash of 32 bytes`);
const hashes = (value, what) => checked(Array.isArray(value), value, `${what} is not a list`).map((each) => hash(each, what));

/** Standard base64, with padding, written the one way that it can be. */
function bytes(value, what) {
  const isPlain = /^[A-Za-z0-9+/]*={0,2}$/.test(string(value, what)) && value.length % 4 === 0;
  const units = isPlain ? atob(value) : '';
  return checked(isPlain && btoa(units) === value, Uint8Array.from(units, (unit) => unit.charCodeAt(0)), `${what} is not base64`);
}

const list = (value, what) => checked(Array.isArray(value), value, `${what} is not a list`);
const texts = (value, what) => list(value, what).map((each) => string(each, what));
const orNull = (read) => (value, what) => (value === null ? null : read(value, what));
const counted = (value, what) => {
  wellFormed(typeof value === 'object' && value !== null && !Array.isArray(value), `${what} is not an object`);
  return Object.fromEntries(Object.entries(value).map(([name, count]) => [name, whole(count, what)]));
};
const one = (value, what) => checked(value === 1, value, `${what} is of an unknown version`);
const checkedBy = { method: string, looked_at: counted, residual_hits: whole };
const touched = { name: string, versions_erased: whole };
const sha256Text = (value, what) => checked(/^[0-9a-f]{64}$/.test(value), value, `${what} is no SHA-256`);
const digests = { digest_before: sha256Text, digest_after: sha256Text };
const receiptMembers = {
  version: one, receipt_id: string, subject_commitment: string, reason: string, requested_by: string, tenant: orNull(string),
  purpose: orNull(string), policy_digest: string, intent_seq: whole, complete_seq: whole, issued_at: string, keys_destroyed: texts,
  counts: counted, projections: (value, what) => list(value, what).map((each) => record(each, what, touched, digests)),
  verification: (value, what) => record(value, what, checkedBy),
  residuals: (value, what) => list(value, what).map((each) => record(each, what, { where: string, state: string })), proof: string,
};

const prefix = (value, what) => record(value, what, { first: whole, second: whole, first_root_hash: hash, path: hashes });
const row = { pk: string, row_hash: hash, rows_root: hash, path: hashes, salt: bytes, row: bytes };
const branch = { name: string, source: string, shares: string, statement: string, fork_position: whole, fork: prefix };
const entry = { position: (value, what) => (value === null ? null : whole(value, what)), leaf_index: whole, leaf_hash: hash, leaf: bytes };
const tree = { origin: string, hash_alg: string, tree_alg: string, tree_size: whole, root_hash: hash, checkpoint: string };
const claims = { consistency: prefix, row: (value, what) => record(value, what, row), branch: (value, what) => record(value, what, branch) };

/** An object with these members and no others: what could not be checked here must not look as if it had been. */
function record(value, what, members, optional = {}) {
  wellFormed(typeof value === 'object' && value !== null && !Array.isArray(value), `${what} is not an object`);
  const known = { ...members, ...optional };
  for (const name of Object.keys(value)) wellFormed(Object.hasOwn(known, name), `${what} claims what can't be checked here: ${shown(name)}`);
  const read = Object.entries(known).filter(([name]) => name in members || value[name] !== undefined);
  return Object.fromEntries(read.map(([name, as]) => [name, as(value[name], `${what}: ${name}`)]));
}

/** Nothing signed says what was pruned from a log, so a file can't either. */
const nothingPruned = (value, what) => checked(value === 0, value, `${what} is not 0: what was pruned can't be checked here`);
function parseProof(text) {
  const members = { ...entry, ...tree, inclusion_path: hashes, minimum_index: nothingPruned };
  const proof = record(parseJson(text), 'the proof', members, claims);
  demand(proof.hash_alg === 'sha-256' && proof.tree_alg === 'RFC9162', 'the proof is of another kind of tree');
  return proof;
}

/** A member that is there twice is refused: two readers could take different ones. */
function parseJson(text) {
  const value = JSON.parse(text);
  const named = (text.match(/"[^"\\]*(?:\\.[^"\\]*)*"(?:\s*:)?/gs) ?? []).filter((found) => found.endsWith(':')).length;
  let members = 0;
  for (const left = [value]; left.length > 0; ) {
    const next = left.pop();
    if (typeof next !== 'object' || next === null) continue;
    if (!Array.isArray(next)) members += Object.keys(next).length;
    for (const inner of Object.values(next)) left.push(inner);
  }
  wellFormed(named === members, 'the JSON has a member twice');
  return value;
}

// ---- Bytes ------------------------------------------------------------------------------------------------------------
const same = (one, other) => one.length === other.length && one.every((byte, i) => byte === other[i]);
const toUtf8 = (text) => new TextEncoder().encode(text);
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function concat(parts) {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all;
}

// ---- Words ------------------------------------------------------------------------------------------------------------
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const utf8 = (bytes) => decoder.decode(bytes);

/** Nanoseconds since 1970 as UTC. */
function instant(ns) {
  const seconds = ns / 1_000_000_000n - (ns % 1_000_000_000n < 0n ? 1n : 0n);
  const date = new Date(Number(seconds) * 1000);
  const fraction = String(ns - seconds * 1_000_000_000n).padStart(9, '0');
  return Number.isNaN(date.getTime()) ? `${ns} ns` : date.toISOString().replace('.000Z', `.${fraction}Z`);
}

/** Control characters of somebody else's text must not write over what is said here. */
const shown = (value) => (typeof value === 'string' ? JSON.stringify(value).replace(/[\u007f-\u009f]/g, '?') : String(value));

function leafInWords({ kind, position, positions, time, branch, path, principal, door, purpose }) {
  const place = positions === 0 ? 'no position' : `position ${position}${positions > 1 ? ` to ${position + positions - 1}` : ''}`;
  const why = purpose === null ? '' : `, purpose ${shown(purpose)}`;
  const where = path === null ? 'no organisation' : `organisation ${shown(path)}`;
  return `kind ${kind}, ${place}, ${instant(time)}, branch ${shown(branch)}, ${where}, by ${shown(principal)} through ${shown(door)}${why}`;
}

function rowInWords({ type, pk, op, from, to, source, method, confidence, values }) {
  const bounds = `${from === null ? '' : `, true from ${instant(from)}`}${to === null ? '' : `, true until ${instant(to)}`}`;
  const lines = values.map(([name, value]) => `\n      ${shown(name)}: ${shown(value)}`).join('');
  return `${shown(type)} ${shown(pk)}${op}${bounds}, from ${shown(source)} by ${shown(method)} with confidence ${confidence}${lines}`;
}

// ---- The command ------------------------------------------------------------------------------------------------------
const usage = [
  'usage: node annals-verify.mjs <proof file> --key <key of the log, or a file that holds it> [--head <checkpoint file>]',
  '       node annals-verify.mjs <receipt file> --key <key of the log> --erasure-key <hex> [--salt <hex> --subject <file>]',
].join('\n');
const options = ['--key', '--head', '--erasure-key', '--salt', '--subject'];

export function main(args) {
  const { existsSync, readFileSync } = ofNode('node:fs');
  const given = {};
  for (let i = 0; i < args.length; i++) {
    const name = options.includes(args[i]) ? args[i++] : 'proof';
    if (args[i] === undefined || name in given || (name === 'proof' && args[i].startsWith('-'))) return end(2, usage);
    given[name] = args[i];
  }
  const isReceipt = given['--erasure-key'] !== undefined;
  if (!given.proof || !given['--key'] || (isReceipt ? given['--head'] : given['--salt'] || given['--subject'])) return end(2, usage);
  if ((given['--salt'] === undefined) !== (given['--subject'] === undefined)) return end(2, usage);
  let [key, erasureKey, proof, head, subject] = [];
  try {
    [key, erasureKey] = ['--key', '--erasure-key'].map((name) => {
      const value = given[name];
      const text = value !== undefined && existsSync(value) ? readFileSync(value, 'utf8') : value;
      if (text !== undefined) parseKey(text);
      return text;
    });
    [proof, head, subject] = [given.proof, given['--head'], given['--subject']].map((path) => (path === undefined ? null : readFileSync(path)));
  } catch (error) {
    return end(2, error.message);
  }
  try {
    const told = subject && { salt: given['--salt'], subject: utf8(subject).replace(/\n$/, '') };
    const proven = isReceipt ? verifyReceipt(utf8(proof), key, erasureKey, told) : verifyProof(utf8(proof), key, head && utf8(head));
    return end(0, `PROVEN\n${proven.map((line) => `  - ${line}`).join('\n')}`);
  } catch (error) {
    return end(1, `NOT PROVEN: ${error instanceof NotProven ? error.message : `malformed: ${error.message}`}`);
  }
}

function end(code, message) {
  (code === 0 ? process.stdout : process.stderr).write(`${message}\n`);
  return code;
}

/** Whether Node was started with this file. */
function isCommand() {
  const [fs, url] = [ofNode('node:fs'), ofNode('node:url')];
  const started = fs && process.argv[1];
  return Boolean(started) && fs.existsSync(started) && fs.realpathSync(started) === url.fileURLToPath(import.meta.url);
}
if (isCommand()) process.exitCode = main(process.argv.slice(2));
