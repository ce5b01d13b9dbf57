/**
 * The hash-chained list of log files: `<data>/log/manifest`, text, replaced atomically whenever a file is begun.
 *
 *   annals-log 1 <log id>
 *   <number>[.<generation>] <state> <first leaf> <first position> <length> <leaves> <root> <link>
 *
 * Link = SHA-256 over the link of the line above and this line up to it; the first line's link is SHA-256 of that line.
 * All files but the last are sealed: their length, leaf count and root (of the tree at their end) are final, so
 * nothing in them can pass for a torn tail. Of the open file length, leaves and root stand as `-`. A sealed file from which
 * something was dropped is another file of the same leaves, one generation further; the list is what makes it the one that counts.
 */
import { malformedError } from '../bytes/byte-stream.ts';
import type { Disk } from '../disk/disk.ts';
import { sha256Hex } from '../bytes/sha256.ts';

export type LogFileRecord = OpenFileRecord | SealedFileRecord;

export interface OpenFileRecord {
  readonly state: 'open';
  readonly number: number;
  readonly firstLeaf: number;
  readonly firstPosition: number;
}

export interface SealedFileRecord {
  readonly state: 'sealed';
  readonly number: number;
  readonly firstLeaf: number;
  readonly firstPosition: number;
  /** How often it was written anew, if it was. */
  readonly generation?: number;
  /** Bytes, file header included. */
  readonly length: number;
  readonly leaves: number;
  /** Hex root of the tree over all leaves up to this file's end. */
  readonly root: string;
}

export interface Manifest {
  readonly logId: string;
  /** Numbered from 0, the last one open. */
  readonly files: readonly LogFileRecord[];
}

export function logFileName({ number, generation = 0 }: { readonly number: number; readonly generation?: number }): string {
  const name = String(number).padStart(8, '0');
  return generation === 0 ? `${name}.log` : `${name}.${generation}.log`;
}

/** Number and generation in a name that `logFileName` makes; undefined for any other name. */
export function parseFileName(name: string): { readonly number: number; readonly generation: number } | undefined {
  const match = /^(\d{8})(?:\.([1-9]\d{0,8}))?\.log$/.exec(name);
  return match ? { number: Number(match[1]), generation: Number(match[2] ?? 0) } : undefined;
}

export function manifestPath(logDirectory: string): string {
  return `${logDirectory}/manifest`;
}

export async function readManifest(disk: Disk, logDirectory: string): Promise<Manifest | undefined> {
  const bytes = await disk.readFile(manifestPath(logDirectory));
  return bytes && parseManifest(Buffer.from(bytes).toString('latin1'));
}

export async function writeManifest(disk: Disk, logDirectory: string, manifest: Manifest): Promise<void> {
  await disk.replaceFile(manifestPath(logDirectory), Buffer.from(formatManifest(manifest), 'latin1'));
}

export function formatManifest({ logId, files }: Manifest): string {
  const head = headOf(logId);
  let link = sha256Hex(head);
  let text = `${head}\n`;
  for (const file of files) {
    const line = lineOf(file);
    link = sha256Hex(`${link} ${line}`);
    text += `${line} ${link}\n`;
  }
  return text;
}

/** The link over all files numbered below `number`: never changes once they are sealed. */
export function linkBefore({ logId, files }: Manifest, number: number): string {
  return files.slice(0, number).reduce((link, file) => sha256Hex(`${link} ${lineOf(file)}`), sha256Hex(headOf(logId)));
}

function headOf(logId: string): string {
  return `annals-log 1 ${logId}`;
}

function lineOf(file: LogFileRecord): string {
  const end = file.state === 'sealed' ? `${file.length} ${file.leaves} ${file.root}` : '- - -';
  const generation = file.state === 'sealed' && file.generation ? `.${file.generation}` : '';
  return `${file.number}${generation} ${file.state} ${file.firstLeaf} ${file.firstPosition} ${end}`;
}

const linePattern =
  /^(\d+)(?:\.([1-9]\d{0,8}))? (?:(open) (\d+) (\d+) - - -|(sealed) (\d+) (\d+) (\d+) (\d+) ([0-9a-f]{64})) [0-9a-f]{64}$/;

/** Throws REL_STORAGE unless the text is byte for byte what `formatManifest` writes for some list in order. */
export function parseManifest(text: string): Manifest {
  const lines = text.split('\n');
  const head = /^annals-log 1 ([0-9a-f]{32})$/.exec(lines[0]!);
  if (!head) throw malformedError('a manifest of another format');
  const files = lines.slice(1, -1).map(parseLine);
  const manifest = { logId: head[1]!, files };
  if (formatManifest(manifest) !== text) throw malformedError('a manifest whose chain is broken');
  checkOrder(files);
  return manifest;
}

function parseLine(line: string): LogFileRecord {
  const match = linePattern.exec(line);
  if (!match) throw malformedError('a manifest line');
  const number = Number(match[1]);
  const generation = match[2] === undefined ? {} : { generation: Number(match[2]) };
  if (match[3]) return { state: 'open', number, firstLeaf: Number(match[4]), firstPosition: Number(match[5]) };
  return {
    state: 'sealed',
    number,
    ...generation,
    firstLeaf: Number(match[7]),
    firstPosition: Number(match[8]),
    length: Number(match[9]),
    leaves: Number(match[10]),
    root: match[11]!,
  };
}

function checkOrder(files: readonly LogFileRecord[]): void {
  let leaf = 0;
  let position = 0;
  files.forEach((file, i) => {
    const last = i === files.length - 1;
    const inOrder =
      file.number === i && (file.state === 'open') === last && file.firstLeaf === leaf && file.firstPosition >= position;
    if (!inOrder) throw malformedError('a manifest out of order');
    if (file.state === 'sealed') leaf += file.leaves;
    position = file.firstPosition;
  });
  if (files.length === 0) throw malformedError('a manifest without files');
}
