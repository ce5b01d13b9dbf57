/** Files that share a process leave it as they found it; what the text of a file can't tell, `setup.ts` looks at when it has run. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aloneFiles, sharedFiles } from './shared.ts';

const root = join(import.meta.dirname, '../..');

/** What changes a process for good. */
const changes =
  /process\.(on|once|chdir)\(|process\.env(\[[^\]]+\])? = |\bvi\.(mock|stubGlobal)\(|\.prototype\.\w+ = |\.prototype\[[^\]]+\] = |syncBuiltinESMExports|setFlagsFromString/;

test('a file that shares a process changes nothing of it; one that does goes to aloneFiles in test/runner/shared.ts', () => {
  expect(sharedFiles.length).toBeGreaterThan(250);
  const written = sharedFiles.filter((path) => path !== 'test/runner/shared.test.ts');
  expect(written.filter((path) => changes.test(readFileSync(join(root, path), 'utf8')))).toEqual([]);
});

test('every file that is to run alone is there', () => {
  expect(aloneFiles.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
