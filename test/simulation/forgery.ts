/** What an attacker can do who knows every format and holds no key: change a leaf and make everything unsigned fit again. */
import { leafHashOf, noPreviousHash, type EncodedEntry } from '../../src/log/entries/entry-codec.ts';
import {
  decodeFrameHeader,
  encodeFrame,
  FILE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  frameEntries,
} from '../../src/log/files/log-file.ts';
import { formatManifest, type LogFileRecord, manifestPath, parseManifest } from '../../src/log/files/manifest.ts';
import { Frontier } from '../../src/log/tree/merkle-tree.ts';
import type { Image } from './faulty-disk.ts';

/** Where a leaf keeps the hash of the leaf before it. */
const previousHashAt = 30;

interface Stored {
  leaf: Buffer;
  payload: Buffer;
}

/** Every entry of every file as `change` leaves it, in place and of the same size, with frame checksums made good. */
export function rewritten(image: Image, change: (stored: Stored, leaf: number) => void, afterFile?: () => void): Image {
  const files = new Map(image.files);
  for (const path of [...files.keys()].filter((name) => name.endsWith('.log')).sort()) {
    const number = Number(path.slice(-12, -4));
    const bytes = Buffer.from(files.get(path)!);
    for (let at = FILE_HEADER_BYTES; at < bytes.length; ) {
      const header = decodeFrameHeader(bytes.subarray(at), number, at);
      if (!header) break;
      const size = FRAME_HEADER_BYTES + header.size;
      const entries = frameEntries(bytes.subarray(at, at + size), header).map(({ leaf, payload }, i) => {
        const stored: Stored = { leaf: Buffer.from(leaf), payload: Buffer.from(payload) };
        change(stored, header.firstLeaf + i);
        return { ...stored, entry: { leaf: header.firstLeaf + i } } as unknown as EncodedEntry;
      });
      bytes.set(encodeFrame({ file: number, offset: at, durableThrough: header.durableThrough }, entries, 0), at);
      at += size;
    }
    files.set(path, bytes);
    afterFile?.();
  }
  return { directories: image.directories, files };
}

/** Every leaf that names `from` names `to`, of the same length, instead; links, checksums, roots and manifest agree. */
export function rechained(image: Image, logDirectory: string, from: string, to: string): Image {
  const tree = new Frontier();
  const roots: string[] = [];
  let previous = noPreviousHash;
  const changed = rewritten(
    image,
    ({ leaf }) => {
      leaf.set(previous, previousHashAt);
      rename(leaf, from, to);
      previous = leafHashOf(leaf);
      tree.append(previous);
    },
    () => roots.push(Buffer.from(tree.root()).toString('hex')),
  );
  return withManifest(changed, logDirectory, (record, i) => ({ ...record, root: roots[i]! }));
}

/** Writes `to` over `from` where a leaf names it; false where it does not. */
export function rename(leaf: Buffer, from: string, to: string): boolean {
  const at = leaf.indexOf(from);
  if (at >= 0) leaf.write(to, at);
  return at >= 0;
}

type Sealed = Extract<LogFileRecord, { state: 'sealed' }>;

/** The manifest with its sealed files changed and its own chain made good. */
export function withManifest(image: Image, logDirectory: string, change: (record: Sealed, index: number) => Sealed): Image {
  const path = manifestPath(logDirectory);
  const manifest = parseManifest(Buffer.from(image.files.get(path)!).toString('latin1'));
  const changed = manifest.files.map((record, i) => (record.state === 'sealed' ? change(record, i) : record));
  const text = formatManifest({ logId: manifest.logId, files: changed });
  return { directories: image.directories, files: new Map(image.files).set(path, Buffer.from(text, 'latin1')) };
}
