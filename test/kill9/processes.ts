/** What the programs that kill servers share. */
import type { ChildProcess } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';

/** Resolves once the process and its pipes have ended. */
export async function stop(server: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const ended = new Promise((resolve) => server.once('close', resolve));
  server.kill(signal);
  await ended;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: free } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return free;
}
