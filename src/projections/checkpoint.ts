/**
 * A projection's saved state: one file, replaced atomically, so that position and data can't part.
 *
 *   +---------+--------------+-------------------------------+------------------+-------------------+
 *   | magic 8 | header u32LE | header JSON                   | sections, in a   | SHA-256 over all  |
 *   |         | length       | (place, names, lengths)       | row, no gaps     | before, 32 bytes  |
 *   +---------+--------------+-------------------------------+------------------+-------------------+
 *
 * A checkpoint is a shortcut and never a source: whatever is wrong with it, it is refused with a reason and the
 * projection is rebuilt from the log.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Disk } from '../log/disk.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from './projection.ts';
import type { Projector } from './projector.ts';

/** Which log, and how much of it, a checkpoint stands for. */
export interface CheckpointPlace {
  readonly logId: string;
  /** Leaves that are applied. */
  readonly leaves: number;
  /** Lower-case hex hash of the last of them; empty when there is none. */
  readonly leafHash: string;
}

/** The log as a checkpoint is judged against it. */
export interface LogIdentity {
  readonly logId: string;
  /** Lower-case hex hash of a leaf; undefined when the log has no such leaf. */
  leafHash(leaf: number): Promise<string | undefined> | string | undefined;
}

interface Header extends CheckpointPlace {
  readonly projection: string;
  readonly projectionFormat: number;
  readonly sections: readonly { readonly name: string; readonly length: number }[];
}

const MAGIC = new TextEncoder().encode('ANNALSC1');
const HASH_BYTES = 32;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Saves a projection as it stands at its watermark. The projection writes all sections in the turn in which it is asked. */
export async function writeCheckpoint(
  disk: Disk,
  directory: string,
  projector: Projector,
  name: string,
  log: LogIdentity,
): Promise<CheckpointPlace | null> {
  const projection = projector.projection(name);
  const leaves = projector.watermarkOf(name);
  const sections: { name: string; bytes: Uint8Array }[] = [];
  const writer: CheckpointWriter = { section: (section, bytes) => void sections.push({ name: section, bytes }) };
  await projection.checkpoint(writer);
  const leafHash = leaves === 0 ? '' : await log.leafHash(leaves - 1);
  if (leafHash === undefined) return null;
  const place: CheckpointPlace = { logId: log.logId, leaves, leafHash };
  await disk.replaceFile(fileOf(directory, projection), encode(projection, place, sections));
  return place;
}

/**
 * Brings a projection to the state of its checkpoint and moves its watermark there. A string says why there was nothing to
 * restore; the projection is then as it was, or reset if it broke half-way.
 */
export async function restoreCheckpoint(
  disk: Disk,
  directory: string,
  projector: Projector,
  name: string,
  log: LogIdentity,
): Promise<CheckpointPlace | string> {
  const projection = projector.projection(name);
  const bytes = await disk.readFile(fileOf(directory, projection));
  if (!bytes) return 'there is none';
  const decoded = decode(bytes);
  if (typeof decoded === 'string') return decoded;
  const { header, sections } = decoded;
  if (header.projection !== projection.name || header.projectionFormat !== projection.formatVersion)
    return 'it has another format';
  if (header.logId !== log.logId) return 'it belongs to another log';
  if (header.leaves > 0 && (await log.leafHash(header.leaves - 1)) !== header.leafHash)
    return 'the log does not hold what it stands for';
  const reader: CheckpointReader = { section: (section) => sections.get(section) };
  try {
    await projection.restore(reader);
  } catch (error) {
    projection.reset();
    projector.restored(name, 0);
    return `it can't be read: ${error instanceof Error ? error.message : String(error)}`;
  }
  projector.restored(name, header.leaves);
  return { logId: header.logId, leaves: header.leaves, leafHash: header.leafHash };
}

function fileOf(directory: string, projection: Projection): string {
  return join(directory, `${projection.name}.checkpoint`);
}

function encode(
  projection: Projection,
  place: CheckpointPlace,
  sections: readonly { name: string; bytes: Uint8Array }[],
): Uint8Array {
  const header: Header = {
    ...place,
    projection: projection.name,
    projectionFormat: projection.formatVersion,
    sections: sections.map(({ name, bytes }) => ({ name, length: bytes.length })),
  };
  const head = encoder.encode(JSON.stringify(header));
  const start = MAGIC.length + 4 + head.length;
  const size = sections.reduce((sum, { bytes }) => sum + bytes.length, start + HASH_BYTES);
  const file = new Uint8Array(size);
  file.set(MAGIC);
  new DataView(file.buffer).setUint32(MAGIC.length, head.length, true);
  file.set(head, MAGIC.length + 4);
  let at = start;
  for (const { bytes } of sections) {
    file.set(bytes, at);
    at += bytes.length;
  }
  file.set(createHash('sha256').update(file.subarray(0, at)).digest(), at);
  return file;
}

function decode(file: Uint8Array): { header: Header; sections: ReadonlyMap<string, Uint8Array> } | string {
  const end = file.length - HASH_BYTES;
  const headAt = MAGIC.length + 4;
  if (end < headAt || MAGIC.some((byte, i) => file[i] !== byte)) return 'it is not a checkpoint';
  const hash = createHash('sha256').update(file.subarray(0, end)).digest();
  if (!hash.equals(file.subarray(end))) return 'its checksum is wrong';
  const headLength = new DataView(file.buffer, file.byteOffset).getUint32(MAGIC.length, true);
  // The checksum has vouched for the bytes: from here on they are what was written.
  const header = JSON.parse(decoder.decode(file.subarray(headAt, headAt + headLength))) as Header;
  const sections = new Map<string, Uint8Array>();
  let at = headAt + headLength;
  for (const { name, length } of header.sections) {
    sections.set(name, file.subarray(at, at + length));
    at += length;
  }
  return { header, sections };
}
