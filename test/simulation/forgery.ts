/** What an attacker can do who knows every format and holds no key: change a leaf and make everything unsigned fit again. */
import { leafHashOf, noPreviousHash, type EncodedEntry } from '../../src/log/entry-codec.ts';
import { decodeFrameHeader, encodeFrame, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, frameEntries } from '../../src/log/log-file.ts';
import { formatManifest, type LogFileRecord, manifestPath, parseManifest } from '../../src/log/manifest.ts';
import { Frontier } from '../../src/log/merkle-tree.ts';
import type { Image } from './faulty-disk.ts';

/** Where a leaf keeps the hash of the leaf before it. */
const previousHashAt = 30;

/** Every leaf that names `from` names `to`, of the same length, instead; links, checksums, roots and manifest agree. */
export function rechained(image: Image, logDirectory: string, from: string, to: string): Image {
  const files = new Map(image.files);
  const tree = new Frontier();
  const roots: string[] = [];
  let previous = noPreviousHash;
  for (const path of [...files.keys()].filter((name) => name.endsWith('.log')).sort()) {
    const number = Number(path.slice(-12, -4));
    const bytes = Buffer.from(files.get(path)!);
    for (let at = FILE_HEADER_BYTES; at < bytes.length; ) {
      const header = decodeFrameHeader(bytes.subarray(at), number, at)!;
      const size = FRAME_HEADER_BYTES + header.size;
      const entries = frameEntries(bytes.subarray(at, at + size), header).map(({ leaf: original, payload }, i) => {
        const leaf = Buffer.from(original);
        leaf.set(previous, previousHashAt);
        const named = leaf.indexOf(from);
        if (named >= 0) leaf.write(to, named);
        previous = leafHashOf(leaf);
        tree.append(previous);
        return { leaf, payload, entry: { leaf: header.firstLeaf + i } } as unknown as EncodedEntry;
      });
      bytes.set(encodeFrame({ file: number, offset: at, durableThrough: header.durableThrough }, entries, 0), at);
      at += size;
    }
    roots.push(Buffer.from(tree.root()).toString('hex'));
    files.set(path, bytes);
  }
  return withManifest({ directories: image.directories, files }, logDirectory, (record, i) => ({ ...record, root: roots[i]! }));
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
