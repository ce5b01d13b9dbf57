/**
 * Files of lookup tables, all below one root. A path comes from a caller, so nothing about it is believed: not the text,
 * not what it resolves to, and not that it stays so between the look and the opening.
 */
import { constants, type Stats } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '../errors.ts';
import type { LookupFiles } from '../planner/continuous/views/lookup-tables.ts';

const pathCharactersMax = 1_024;

/** One text for every refusal of a path: it must not reveal whether a file outside the root exists. */
const refusal = (): ServiceError => new ServiceError('REL_INVALID', 'the path names no regular file below SERVICE_LOOKUP_ROOT');

export function lookupFiles(root: string): LookupFiles {
  return {
    async read(path, bytesMax) {
      if (!isPlain(path)) throw refusal();
      try {
        return await readBelow(await realpath(root), path, bytesMax);
      } catch (error) {
        throw error instanceof ServiceError ? error : refusal();
      }
    },
  };
}

/** Relative, with forward slashes, without dots that climb, in the one spelling that Unicode has for it. */
function isPlain(path: string): boolean {
  if (path.length === 0 || path.length > pathCharactersMax || path.normalize('NFC') !== path) return false;
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\\:%]/.test(path)) return false;
  return path.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
}

async function readBelow(root: string, path: string, bytesMax: number): Promise<Uint8Array> {
  const full = join(root, path);
  // A link anywhere on the way would make another path of it.
  if ((await realpath(full)) !== full) throw refusal();
  // Without O_NONBLOCK opening a pipe would block until a writer opens it too.
  const file = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const opened = await file.stat();
    if (!opened.isFile() || opened.nlink !== 1) throw refusal();
    // The opened file is still the one at this path, and the path is still free of links: no race was won in between.
    if ((await realpath(full)) !== full || !isSame(opened, await stat(full))) throw refusal();
    if (opened.size > bytesMax) throw new ServiceError('REL_TOO_LARGE', `a lookup file has at most ${bytesMax} bytes`);
    const bytes = Buffer.alloc(opened.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
}

function isSame(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}
