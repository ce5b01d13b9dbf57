/** `annals jobs` against a server in this process: the list, the bar of one that runs, its end, and cancelling it. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { jobsCommand } from '../src/cli/jobs.ts';
import type { JobWork } from '../src/governance/jobs/job-runner.ts';
import { tenantlessCaller } from '../src/governance/caller.ts';
import { adminSecret, StoreWorld } from './doors/http/store-world.ts';
import { systemClock } from '../src/clock.ts';

let world: StoreWorld;
let printed = '';
beforeAll(async () => {
  world = await StoreWorld.open();
  vi.stubEnv('SERVICE_ADMIN_TOKEN', adminSecret);
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
});
afterAll(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await world.close();
});

const said = (): string => {
  const text = printed;
  printed = '';
  return text;
};

test('a job is listed, followed as a bar, and cancelled', async () => {
  let end: () => void = () => undefined;
  const run = ({ signal, progress }: JobWork): Promise<void> => {
    progress(1, 4);
    return new Promise((resolve, reject) => {
      end = resolve;
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };
  const caller = tenantlessCaller('ops', 'admin', 'http');
  const start = () =>
    world.service.automation.jobs.start({ kind: 'restore', about: 'b1', unit: 'bytes', onDrain: 'cancel', run }, caller);
  const server = { url: world.door.adminUrl, admin: true };
  const first = start();
  expect(await jobsCommand(undefined, server)).toBe(0);
  expect(said()).toMatch(/restore.*b1.*running.*25 % of 4 bytes.*ops/);

  let drawn = '';
  let lookedMs = 0;
  const clock = {
    ...systemClock,
    monotonicMs: () => (lookedMs += 700),
    sleep: async () => void (drawn.includes('25 %') && end()),
  };
  const bar = { isTTY: true, columns: 100, write: (text: string) => void (drawn += text) };
  expect(await jobsCommand(first.view.id, server, clock, bar)).toBe(0);
  expect(drawn).toMatch(/restore \[######\.{18}\] 25 % 1 bytes/);
  expect(said()).toMatch(/done.*100 % of 4 bytes/);

  const second = start();
  second.ended.catch(() => undefined);
  expect(await jobsCommand(second.view.id, { ...server, cancel: true, json: true })).toBe(0);
  expect(JSON.parse(said())).toMatchObject({ id: second.view.id });
  expect(await jobsCommand(second.view.id, server)).toBe(1);
  expect(said()).toMatch(/cancelled: REL_CANCELLED/);
  await expect(jobsCommand(undefined, { ...server, cancel: true })).rejects.toThrow('name the job to cancel');
});
