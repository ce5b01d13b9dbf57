/** What both disks promise to the log, on the same cases. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Disk } from '../../../src/log/disk/disk.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { nodeDisk } from '../../../src/log/disk/node-disk.ts';
import { loading, running } from '../../runner/running.ts';

const made: string[] = [];
afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

function temporary(): string {
  const path = mkdtempSync(join(tmpdir(), 'annals-disk-'));
  made.push(path);
  return path;
}

const disks: [string, () => Promise<{ disk: Disk; home: string }>][] = [
  ['node', async () => ({ disk: nodeDisk, home: temporary() })],
  [
    'memory',
    async () => {
      const disk = new MemoryDisk();
      await disk.makeDirectory('/home');
      return { disk, home: '/home' };
    },
  ],
];

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (content: Uint8Array | undefined): string | undefined => content && new TextDecoder().decode(content);

describe.each(disks)('the %s disk', (_name, make) => {
  it('reads back what was written at an offset, zeros in the gap, and nothing past the end', async () => {
    const { disk, home } = await make();
    const file = await disk.open(`${home}/a`, 'create');
    expect(await file.write(bytes('tail'), 6)).toBe(4);
    await file.sync();
    const target = new Uint8Array(16);
    expect(await file.read(target, 0)).toBe(10);
    expect(text(target.subarray(0, 10))).toBe('\0\0\0\0\0\0tail');
    expect(await file.read(target, 10)).toBe(0);
    expect(await file.size()).toBe(10);
    await file.close();
  });

  it('forgets what a truncation cut, also when the file grows again', async () => {
    const { disk, home } = await make();
    const file = await disk.open(`${home}/a`, 'create');
    await file.write(bytes('abcdef'), 0);
    await file.truncate(2);
    await file.truncate(4);
    await file.close();
    expect(text(await disk.readFile(`${home}/a`))).toBe('ab\0\0');
  });

  it('creates only what is absent and opens only what is there', async () => {
    const { disk, home } = await make();
    await expect(disk.open(`${home}/a`, 'write')).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(disk.open(`${home}/none/a`, 'create')).rejects.toMatchObject({ code: 'ENOENT' });
    await (await disk.open(`${home}/a`, 'create')).close();
    await expect(disk.open(`${home}/a`, 'create')).rejects.toMatchObject({ code: 'EEXIST' });
    const reader = await disk.open(`${home}/a`, 'read');
    await expect(reader.write(bytes('x'), 0)).rejects.toMatchObject({ code: 'EBADF' });
    await reader.close();
  });

  it('removes a directory that is empty, and no other', async () => {
    const { disk, home } = await make();
    await disk.makeDirectory(`${home}/d`);
    await disk.replaceFile(`${home}/d/a`, bytes('a'));
    await expect(disk.removeDirectory(`${home}/d`)).rejects.toMatchObject({ code: 'ENOTEMPTY' });
    await disk.unlink(`${home}/d/a`);
    await disk.removeDirectory(`${home}/d`);
    expect(await disk.list(home)).toEqual([]);
    await expect(disk.removeDirectory(`${home}/d`)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('lists names bytewise, replaces files whole, and says undefined of what is absent', async () => {
    const { disk, home } = await make();
    await disk.makeDirectory(`${home}/d/e`);
    for (const name of ['b', 'a', 'Z', 'ä']) await disk.replaceFile(`${home}/d/${name}`, bytes(name));
    await disk.replaceFile(`${home}/d/a`, bytes('again'));
    expect(await disk.list(`${home}/d`)).toEqual(['Z', 'a', 'b', 'e', 'ä']);
    expect(await disk.list(`${home}/none`)).toEqual([]);
    expect(text(await disk.readFile(`${home}/d/a`))).toBe('again');
    expect(await disk.size(`${home}/d/a`)).toBe(5);
    await disk.rename(`${home}/d/a`, `${home}/d/c`);
    await disk.unlink(`${home}/d/b`);
    expect(await disk.list(`${home}/d`)).toEqual(['Z', 'c', 'e', 'ä']);
    expect(await disk.readFile(`${home}/d/a`)).toBeUndefined();
    expect(await disk.size(`${home}/d/a`)).toBeUndefined();
    await disk.syncDirectory(`${home}/d`);
    await expect(disk.unlink(`${home}/d/b`)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('gives one lock at a time, and again after its release', async () => {
    const { disk, home } = await make();
    const lock = await disk.lock(`${home}/lock`);
    await expect(disk.lock(`${home}/lock`)).rejects.toThrow();
    await lock.release();
    await (await disk.lock(`${home}/lock`)).release();
  });
});

describe('the node disk alone', () => {
  it('writes and reads more than one system call moves', async () => {
    const home = temporary();
    const content = new Uint8Array(1 << 20).map((_, i) => i * 31);
    await nodeDisk.replaceFile(`${home}/big`, content);
    const file = await nodeDisk.open(`${home}/big`, 'read');
    const target = new Uint8Array(content.length);
    for (let at = 0, count = -1; at < target.length && count !== 0; at += count) {
      count = await file.read(target.subarray(at), at);
    }
    await file.close();
    expect(Buffer.compare(target, content)).toBe(0);
  });

  it('keeps files to their owner', async () => {
    const home = temporary();
    await nodeDisk.replaceFile(`${home}/key`, bytes('k'));
    await (await nodeDisk.open(`${home}/log`, 'create')).close();
    expect(statSync(`${home}/key`).mode & 0o777).toBe(0o600);
    expect(statSync(`${home}/log`).mode & 0o777).toBe(0o600);
  });

  it('names the process that holds the lock, and takes the lock of one that was killed', async () => {
    const home = temporary();
    const script = `import { nodeDisk } from ${JSON.stringify(running('src/log/disk/node-disk').href)};
      await nodeDisk.lock(${JSON.stringify(`${home}/lock`)});
      console.log('locked');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, [...loading, '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await expect(nodeDisk.lock(`${home}/lock`)).rejects.toThrow(`${home} is in use by process ${child.pid}`);
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    await (await nodeDisk.lock(`${home}/lock`)).release();
  });
});
