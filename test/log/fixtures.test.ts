import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { MemoryDisk } from '../../src/log/memory-disk.ts';
import { verifyDirectory } from '../../src/log/verify.ts';
import { all, directory, keyringOf, openLog, plain, worldOn } from './world.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/logs/', import.meta.url));

async function diskOf(version: string): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  for (const folder of ['keys', 'log']) {
    await disk.makeDirectory(`${directory}/${folder}`);
    for (const name of readdirSync(`${fixtures}${version}/data/${folder}`)) {
      await disk.replaceFile(`${directory}/${folder}/${name}`, readFileSync(`${fixtures}${version}/data/${folder}/${name}`));
    }
  }
  return disk;
}

async function filesOf(disk: MemoryDisk): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const folder of ['keys', 'log']) {
    for (const name of await disk.list(`${directory}/${folder}`)) {
      files[`${folder}/${name}`] = Buffer.from((await disk.readFile(`${directory}/${folder}/${name}`))!).toString('hex');
    }
  }
  return files;
}

test.each(readdirSync(fixtures))(
  'log format %s replays to what it was made of, and opening it changes no byte',
  async (version) => {
    const disk = await diskOf(version);
    const before = await filesOf(disk);
    const { log, replayed } = await openLog(worldOn(disk));
    const expected = readFileSync(`${fixtures}${version}/expected.jsonl`, 'utf8').trimEnd().split('\n');
    expect(plain(replayed)).toEqual(expected);
    expect(plain(await all(log.read(0)))).toEqual(expected);
    await log.close();
    expect(await filesOf(disk)).toEqual(before);
  },
);

test.each(readdirSync(fixtures))('log format %s verifies down to the rows', async (version) => {
  const disk = await diskOf(version);
  const report = await verifyDirectory({ disk, directory, keyring: await keyringOf(worldOn(disk)) });
  expect(report).toMatchObject({ ok: true, findings: [] });
});
