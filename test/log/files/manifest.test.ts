import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import {
  formatManifest,
  type LogFileRecord,
  logFileName,
  type Manifest,
  parseManifest,
  parseFileName,
} from '../../../src/log/files/manifest.ts';

const sealed = (number: number, firstLeaf: number, leaves: number): LogFileRecord => ({
  state: 'sealed',
  number,
  firstLeaf,
  firstPosition: firstLeaf * 2,
  length: 1000 + number,
  leaves,
  root: String(number % 10).repeat(64),
});
const manifest: Manifest = {
  logId: '0123456789abcdef0123456789abcdef',
  files: [sealed(0, 0, 5), sealed(1, 5, 7), { state: 'open', number: 2, firstLeaf: 12, firstPosition: 24 }],
};

test('a manifest reads back as it was written', () => {
  expect(parseManifest(formatManifest(manifest))).toEqual(manifest);
  expect(logFileName({ number: 2 })).toBe('00000002.log');
  expect(logFileName({ number: 2, generation: 3 })).toBe('00000002.3.log');
  expect(parseFileName('00000002.3.log')).toEqual({ number: 2, generation: 3 });
  expect(parseFileName('00000002.0.log')).toBeUndefined();
});

test('every changed bit of a manifest is found', () => {
  const bytes = Buffer.from(formatManifest(manifest), 'latin1');
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    expect(() => parseManifest(changed.toString('latin1')), `bit ${bit}`).toThrow(ServiceError);
  }
});

test('a manifest cut at any byte is refused', () => {
  const text = formatManifest(manifest);
  for (let length = 0; length < text.length; length++) expect(() => parseManifest(text.slice(0, length))).toThrow(ServiceError);
});

test.each([
  ['a file missing from the middle', [manifest.files[0]!, manifest.files[2]!]],
  ['two open files', [manifest.files[2]!, manifest.files[2]!]],
  ['no open file', [sealed(0, 0, 5)]],
  ['a gap in the leaves', [sealed(0, 0, 5), { state: 'open', number: 1, firstLeaf: 6, firstPosition: 10 }]],
  ['no file', []],
] as [string, LogFileRecord[]][])('a well-chained manifest with %s is refused', (_, files) => {
  expect(() => parseManifest(formatManifest({ ...manifest, files }))).toThrow(ServiceError);
});
