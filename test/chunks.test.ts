/** Chunks of the bundle run as they are on disk, whatever was compiled of them before. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const scripts = join(import.meta.dirname, '../scripts');
const folder = mkdtempSync(join(tmpdir(), 'annals-chunks-'));

/** Loads a chunk in a process of its own; `isRejected` is V8's word on what was kept of it, undefined where nothing was. */
const program = `import vm from 'node:vm';
import { syncBuiltinESMExports } from 'node:module';
let isRejected;
vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    isRejected = this.cachedDataRejected;
  }
};
syncBuiltinESMExports();
const { load, keepCompiled } = await import('./scripts/chunks.mjs');
const { answer } = await load('./one.js');
if (process.argv[1] === 'keep') keepCompiled();
console.log(JSON.stringify({ answer: await answer(), isRejected }));`;

function run(how: 'keep' | 'only', ...flags: readonly string[]): unknown {
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '-e', program, how], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

function writeChunk(answer: number): void {
  const text = `(async function(require,$bring,$bundle){const{sep}=require('node:path');return{answer:async()=>(await $bring('node:os')).EOL+sep+${answer}}})`;
  writeFileSync(join(folder, 'dist/chunks/one.js'), text);
}

beforeAll(() => {
  for (const each of ['scripts', 'dist/chunks']) mkdirSync(join(folder, each), { recursive: true });
  copyFileSync(join(scripts, 'chunks.mjs'), join(folder, 'scripts/chunks.mjs'));
  writeChunk(1);
});

afterAll(() => rmSync(folder, { recursive: true }));

test('what was compiled is taken for the same chunk, flags and version only', () => {
  expect(run('only')).toEqual({ answer: '\n/1' });
  expect(run('keep')).toEqual({ answer: '\n/1' });
  expect(run('only')).toEqual({ answer: '\n/1', isRejected: false });
  expect(run('only', '--max-lazy')).toEqual({ answer: '\n/1', isRejected: true });
  // As long as before: V8 would take it for the same.
  writeChunk(2);
  expect(run('only')).toEqual({ answer: '\n/2' });
  writeChunk(1);
  expect(run('only')).toEqual({ answer: '\n/1', isRejected: false });
  const [here] = readdirSync(join(folder, 'dist/compiled'));
  expect(here).toBe(`${process.version}-${process.arch}`);
  const kept = join(folder, 'dist/compiled', here!, 'one.js');
  writeFileSync(kept, 'short');
  expect(run('only')).toEqual({ answer: '\n/1' });
});
