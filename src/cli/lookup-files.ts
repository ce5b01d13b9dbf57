/**
 * Files of lookup tables, all below one root. A path comes from a caller, so nothing about it is believed: not the text,
 * not what it resolves to, and not that it stays so between the look and the opening.
 */
import { constants, type Stats } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '../errors.ts';
import type { LookupFiles } from '../planner/continuous/views/lookup-tables.ts';

const lookupPathLengthMax = 1_024;

/** One text for every refusal of a path: it must not reveal whether a file outside the root exists. */
const lookupPathRefusal = (): ServiceError =>
  new ServiceError('REL_INVALID', 'the path names no regular file below SERVICE_LOOKUP_ROOT');

export function lookupFiles(lookupRoot: string): LookupFiles {
  return {
    async read(path, bytesMax) {
      if (!isPlainLookupPath(path)) throw lookupPathRefusal();
      try {
        return await readLookupFile(await realpath(lookupRoot), path, bytesMax);
      } catch (error) {
        throw error instanceof ServiceError ? error : lookupPathRefusal();
      }
    },
  };
}

/** Relative, with forward slashes, without dots that climb, in the one spelling that Unicode has for it. */
function isPlainLookupPath(lookupPath: string): boolean {
  if (lookupPath.length === 0 || lookupPath.length > lookupPathLengthMax || lookupPath.normalize('NFC') !== lookupPath)
    return false;
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\\:%]/.test(lookupPath)) return false;
  return lookupPath.split('/').every((pathSegment) => pathSegment !== '' && pathSegment !== '.' && pathSegment !== '..');
}

async function readLookupFile(lookupRoot: string, lookupPath: string, lookupBytesMax: number): Promise<Uint8Array> {
  const lookupFilePath = join(lookupRoot, lookupPath);
  // A link anywhere on the way would make another path of it.
  if ((await realpath(lookupFilePath)) !== lookupFilePath) throw lookupPathRefusal();
  // Without O_NONBLOCK opening a pipe would block until a writer opens it too.
  const lookupFile = await open(lookupFilePath, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const openedStats = await lookupFile.stat();
    if (!openedStats.isFile() || openedStats.nlink !== 1) throw lookupPathRefusal();
    // The opened file is still the one at this path, and the path is still free of links: no race was won in between.
    if ((await realpath(lookupFilePath)) !== lookupFilePath || !isSameFile(openedStats, await stat(lookupFilePath)))
      throw lookupPathRefusal();
    if (openedStats.size > lookupBytesMax)
      throw new ServiceError('REL_TOO_LARGE', `a lookup file has at most ${lookupBytesMax} bytes`);
    const lookupBytes = Buffer.alloc(openedStats.size);
    let readLength = 0;
    while (readLength < lookupBytes.length) {
      const { bytesRead } = await lookupFile.read(lookupBytes, readLength, lookupBytes.length - readLength, readLength);
      if (bytesRead === 0) break;
      readLength += bytesRead;
    }
    return lookupBytes.subarray(0, readLength);
  } finally {
    await lookupFile.close();
  }
}

function isSameFile(a: Stats, pathStats: Stats): boolean {
  return a.dev === pathStats.dev && a.ino === pathStats.ino;
}
