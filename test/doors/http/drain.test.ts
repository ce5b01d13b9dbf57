/**
 * The end of a server, as a process: what was begun is finished, what waits is told, and whoever starts and stops it knows by
 * its exit code whether rows that it had promised were left behind. Source: specification, "Limits", graceful drain.
 */
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Directories, ServerProcess } from './server-process.ts';

const directories = new Directories();
const servers: ServerProcess[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.signal('SIGKILL');
});
afterAll(() => directories.remove());

async function start(...args: Parameters<typeof ServerProcess.start>): Promise<ServerProcess> {
  const server = await ServerProcess.start(...args);
  servers.push(server);
  return server;
}

const rowsOf = (first: number, count: number): string =>
  Array.from({ length: count }, (_, i) => `{"id":"n${first + i}","text":"${'x'.repeat(40)}"}`).join('\n');

/** Takes rows without waiting for what becomes of them. */
async function promise(server: ServerProcess, token: string, first: number, count: number): Promise<void> {
  const reply = await fetch(`${server.url}/ingest/auto?object_type=N&async=true`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: rowsOf(first, count),
  });
  expect([reply.status, await reply.text()]).toEqual([202, expect.stringContaining('task_id')]);
}

async function countOf(server: ServerProcess, token: string): Promise<number> {
  const reply = await fetch(`${server.url}/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ sql: 'SELECT COUNT(*) AS n FROM N' }),
  });
  if (reply.status === 404) return 0;
  const { rows } = (await reply.json()) as { rows: { n: number }[] };
  return rows[0]!.n;
}

describe('SERVICE_DRAIN_TIMEOUT_SECS', () => {
  test('rows that were promised are written before the end, which is 0', async () => {
    const directory = directories.fresh();
    const first = await start(directory, {}, 'a token');
    const token = first.token!;
    for (let n = 0; n < 5; n++) await promise(first, token, n * 4_000, 4_000);
    const { code, said } = await first.signal('SIGTERM');
    expect([code, said]).toEqual([0, expect.stringContaining('SIGTERM: draining\nclosed\n')]);
    expect(await countOf(await start(directory), token)).toBe(20_000);
  });

  test('when it is over and promised rows are still queued, the end is not 0, and what was acknowledged stays', async () => {
    const directory = directories.fresh();
    const first = await start(directory, { SERVICE_DRAIN_TIMEOUT_SECS: '0' }, 'a token');
    const token = first.token!;
    const written = await fetch(`${first.url}/ingest/auto?object_type=N`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: rowsOf(0, 100),
    });
    expect(written.status).toBe(200);
    for (let n = 0; n < 5; n++) await promise(first, token, 1_000 + n * 50_000, 50_000);
    const { code, said } = await first.signal('SIGTERM');
    expect([code, said]).toEqual([4, expect.stringContaining('closed with work left behind')]);
    const second = await start(directory);
    const rows = await countOf(second, token);
    expect(rows).toBeGreaterThanOrEqual(100);
    expect(rows).toBeLessThan(250_100);
  });

  test('a client that never finishes its body holds the end up no longer than that, and is told to the operator', async () => {
    const server = await start(directories.fresh(), { SERVICE_DRAIN_TIMEOUT_SECS: '1' }, 'a token');
    const gone = new AbortController();
    let sent = 0;
    const endless = fetch(`${server.url}/ingest/auto?object_type=N`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/x-ndjson' },
      body: new ReadableStream({
        pull: async (sink) => {
          if (sent >= 50_000) await new Promise((resolve) => setTimeout(resolve, 100));
          sink.enqueue(Buffer.from(`${rowsOf(sent, 1_000)}\n`));
          sent += 1_000;
        },
      }),
      duplex: 'half',
      signal: gone.signal,
    } as RequestInit).catch((error: unknown) => error);
    // Rows of it are there: it is at work on the rest.
    await expect.poll(() => countOf(server, server.token!), { timeout: 10_000 }).toBeGreaterThan(0);
    const { code } = await server.signal('SIGTERM');
    expect(code).toBe(4);
    gone.abort();
    await endless;
  });

  test('with nothing to do it takes no time, whatever the time-out', async () => {
    const server = await start(directories.fresh(), { SERVICE_DRAIN_TIMEOUT_SECS: '600' }, 'a token');
    expect((await server.signal('SIGINT')).code).toBe(0);
  });
});
