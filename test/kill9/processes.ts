/** What the programs that kill servers share. */
import type { ChildProcess } from 'node:child_process';

/** Resolves once the process and its pipes have ended. */
export async function stop(server: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const ended = new Promise((resolve) => server.once('close', resolve));
  server.kill(signal);
  await ended;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
