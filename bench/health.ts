/** How a server's `/health` fares while something else goes on: `health-poller.ts` in a process of its own on the clients' core. */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { clientCore, pinned, program, start } from './processes.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const everyMs = 5;

/** Times in milliseconds. */
export interface Polled {
  readonly polls: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly lateMs: number;
}

/** Resolves once it asks, every 5 ms. */
export async function startPoller(port: number): Promise<{ stop: () => Promise<Polled> }> {
  const command = [process.execPath, ...program('health-poller.ts', String(port), String(everyMs))];
  const child = start(pinned(clientCore, command), { cwd: root });
  let said = '';
  let wrong = '';
  child.stdout!.on('data', (bytes: Buffer) => (said += bytes.toString()));
  child.stderr!.on('data', (bytes: Buffer) => (wrong += bytes.toString()));
  const closed = once(child, 'close');
  while (!said.includes('asking')) {
    if (child.exitCode !== null) throw new Error(`the poller did not start: ${wrong}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return {
    stop: async () => {
      child.kill('SIGTERM');
      await closed;
      const line = said.trim().split('\n').at(-1)!;
      if (!line.startsWith('{')) throw new Error(`the poller said: ${said} ${wrong}`);
      return JSON.parse(line) as Polled;
    },
  };
}
