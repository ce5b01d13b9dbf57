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
  const paddedNumber = String(number).padStart(8, '0');
  return generation === 0 ? `${paddedNumber}.log` : `${paddedNumber}.${generation}.log`;
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
  const manifestBytes = await disk.readFile(manifestPath(logDirectory));
  return manifestBytes && parseManifest(Buffer.from(manifestBytes).toString('latin1'));
}

export async function writeManifest(disk: Disk, logDirectory: string, manifest: Manifest): Promise<void> {
  await disk.replaceFile(manifestPath(logDirectory), Buffer.from(formatManifest(manifest), 'latin1'));
}

export function formatManifest({ logId, files: manifestFiles }: Manifest): string {
  const firstLine = manifestHead(logId);
  let lineHash = sha256Hex(firstLine);
  let manifestText = `${firstLine}\n`;
  for (const logFile of manifestFiles) {
    const fileLine = manifestLine(logFile);
    lineHash = sha256Hex(`${lineHash} ${fileLine}`);
    manifestText += `${fileLine} ${lineHash}\n`;
  }
  return manifestText;
}

/** The link over all files numbered below `fileNumber`: never changes once they are sealed. */
export function linkBefore({ logId, files: manifestFiles }: Manifest, fileNumber: number): string {
  return manifestFiles
    .slice(0, fileNumber)
    .reduce((lineHash, logFile) => sha256Hex(`${lineHash} ${manifestLine(logFile)}`), sha256Hex(manifestHead(logId)));
}

function manifestHead(logId: string): string {
  return `annals-log 1 ${logId}`;
}

function manifestLine(logFile: LogFileRecord): string {
  const sealedFields = logFile.state === 'sealed' ? `${logFile.length} ${logFile.leaves} ${logFile.root}` : '- - -';
  const generation = logFile.state === 'sealed' && logFile.generation ? `.${logFile.generation}` : '';
  return `${logFile.number}${generation} ${logFile.state} ${logFile.firstLeaf} ${logFile.firstPosition} ${sealedFields}`;
}

const manifestLinePattern =
  /^(\d+)(?:\.([1-9]\d{0,8}))? (?:(open) (\d+) (\d+) - - -|(sealed) (\d+) (\d+) (\d+) (\d+) ([0-9a-f]{64})) [0-9a-f]{64}$/;

/** Throws REL_STORAGE unless the text is byte for byte what `formatManifest` writes for some list in order. */
export function parseManifest(manifestText: string): Manifest {
  const manifestLines = manifestText.split('\n');
  const firstLineMatch = /^annals-log 1 ([0-9a-f]{32})$/.exec(manifestLines[0]!);
  if (!firstLineMatch) throw malformedError('a manifest of another format');
  const logFiles = manifestLines.slice(1, -1).map(parseManifestLine);
  const parsedManifest = { logId: firstLineMatch[1]!, files: logFiles };
  if (formatManifest(parsedManifest) !== manifestText) throw malformedError('a manifest whose chain is broken');
  checkFileOrder(logFiles);
  return parsedManifest;
}

function parseManifestLine(manifestLineText: string): LogFileRecord {
  const lineMatch = manifestLinePattern.exec(manifestLineText);
  if (!lineMatch) throw malformedError('a manifest line');
  const fileNumber = Number(lineMatch[1]);
  const generation = lineMatch[2] === undefined ? {} : { generation: Number(lineMatch[2]) };
  if (lineMatch[3])
    return { state: 'open', number: fileNumber, firstLeaf: Number(lineMatch[4]), firstPosition: Number(lineMatch[5]) };
  return {
    state: 'sealed',
    number: fileNumber,
    ...generation,
    firstLeaf: Number(lineMatch[7]),
    firstPosition: Number(lineMatch[8]),
    length: Number(lineMatch[9]),
    leaves: Number(lineMatch[10]),
    root: lineMatch[11]!,
  };
}

function checkFileOrder(manifestFiles: readonly LogFileRecord[]): void {
  let nextLeaf = 0;
  let lastPosition = 0;
  manifestFiles.forEach((logFile, i) => {
    const isLastFile = i === manifestFiles.length - 1;
    const isInOrder =
      logFile.number === i &&
      (logFile.state === 'open') === isLastFile &&
      logFile.firstLeaf === nextLeaf &&
      logFile.firstPosition >= lastPosition;
    if (!isInOrder) throw malformedError('a manifest out of order');
    if (logFile.state === 'sealed') nextLeaf += logFile.leaves;
    lastPosition = logFile.firstPosition;
  });
  if (manifestFiles.length === 0) throw malformedError('a manifest without files');
}
