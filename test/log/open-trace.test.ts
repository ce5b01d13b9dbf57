import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { RecordingDisk } from './recording-disk.ts';
import { accessDraft, keyringOf, openLog, rowsDraft, worldOn } from './world.ts';

const tracePath = fileURLToPath(new URL('open.trace', import.meta.url));

/** `UPDATE_TRACES=1` rewrites the transcript; the diff is the review. */
test('every create, write, fsync, rename of the log’s life is the transcript in open.trace', async () => {
  const disk = new RecordingDisk();
  const world = worldOn(disk);
  const limits = { fileBytesMax: 2048, preallocateBytes: 256 };
  const lines: string[] = [];
  const chapter = (title: string): void => {
    lines.push(`# ${title}`, ...disk.take());
  };

  const keyring = await keyringOf(world);
  chapter('keys of a new data directory');
  const { log } = await openLog(world, { keyring, limits });
  chapter('a new log');
  await log.append([rowsDraft(['a'])]).acknowledged;
  chapter('one row');
  await log.append([accessDraft('ada')]).written;
  chapter('an access record, which nobody waits for');
  await Promise.all(['b', 'c', 'd'].map((key) => log.append([rowsDraft([key])]).acknowledged));
  chapter('three rows of one turn, and the end of the first file');
  await world.clock.advance(1000);
  chapter('a second of silence');
  await log.append([rowsDraft(['e'])]).acknowledged;
  chapter('one more row; then the process is killed');

  const { log: second } = await openLog(worldOn(disk, 'second'), { keyring, limits });
  chapter('opened by the next process');
  await second.append([rowsDraft(['f'])]).acknowledged;
  disk.take();

  const names = (await disk.list('/data/log')).filter((name) => name.endsWith('.log')).map((name) => `/data/log/${name}`);
  const last = names.pop()!;
  let before = 0;
  for (const name of names) before += (await disk.bytes(name)).length;
  await disk.inner.replaceFile(last, (await disk.bytes(last)).subarray(0, second.status().bytes - before - 7));
  const { log: third } = await openLog(worldOn(disk, 'third'), { keyring, limits });
  expect(third.status().recovery.cutBytes).toBeGreaterThan(0);
  chapter('opened after its last frame was torn');
  await third.close();
  chapter('closed');
  const { log: fourth } = await openLog(worldOn(disk, 'fourth'), { keyring, limits });
  await fourth.close();
  chapter('opened and closed with nothing to do');

  const trace = `${lines.join('\n')}\n`;
  if (process.env['UPDATE_TRACES']) writeFileSync(tracePath, trace);
  expect(trace).toBe(readFileSync(tracePath, 'utf8'));
});
