/** Files that share a process leave it as they found it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aloneFiles, sharedFiles } from './shared.ts';

const root = join(import.meta.dirname, '../..');

/** What changes a process, or finds it changed. */
const changes =
  /process\.(env|on|once|exit|chdir)\b|\bvi\.|\.prototype\b|globalThis|syncBuiltinESMExports|\bspawn|new Worker\(|setFlagsFromString|service\.ts'|harness\.ts'/;

test('a file that shares a process changes nothing of it; one that does goes to aloneFiles in test/runner/shared.ts', () => {
  expect(sharedFiles.length).toBeGreaterThan(90);
  expect(sharedFiles.filter((path) => changes.test(readFileSync(join(root, path), 'utf8')))).toEqual([]);
});

test('every file that is to run alone is there', () => {
  expect(aloneFiles.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
