/** Due instants are those of the expression and its zone, whatever was asked before: jobs of one expression share its answers. */
import { Cron } from 'croner';
import { expect, test } from 'vitest';
import { checkSchedule, nextDue } from '../../src/governance/jobs/job-schedule.ts';
import type { JobDefinition, JobRecord } from '../../src/projections/jobs/job.ts';

const nsPerMs = 1_000_000n;
const hourMs = 3_600_000;
const definition: JobDefinition = {
  name: 'j',
  run: { sql: 'SELECT 1' },
  interval_secs: null,
  cron: null,
  time_zone: null,
  at: null,
  after: null,
  run_now: false,
  catch_up: 'one',
  timeout_secs: 60,
  purpose: null,
};

function jobOf(cron: string, zone: string | null, lastDueMs: number): JobRecord {
  return {
    id: 'j',
    definition: { ...definition, cron, time_zone: zone },
    owner: { principal: 'p', credential: 'none', token: null },
    path: null,
    branch: 'main',
    state: 'scheduled',
    reason: null,
    position: 1,
    made: 0n,
    lastDue: BigInt(lastDueMs) * nsPerMs,
    runCount: 0,
    totalAlerts: 0,
    lastError: null,
    open: null,
    last: null,
  };
}

test('a job is due when its expression says, in any order of asking, over both changes of the clock', () => {
  const expressions = ['30 2 * * *', '*/20 1-3 * * *', '0 * * * *', '15 3 * * 0', '0 0 29 2 *', '5 1 31 12 *'];
  const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', null];
  const changes = ['2026-03-08T07:00Z', '2026-03-29T01:00Z', '2026-10-03T15:30Z', '2026-10-25T01:00Z', '2026-11-01T06:00Z'];
  for (const cron of expressions) {
    for (const zone of zones) {
      const plain = new Cron(cron, { paused: true, timezone: zone ?? 'UTC' });
      for (const change of changes) {
        // Earlier and later ones in turn, some of them at the very instant of a run.
        for (let step = 0; step < 40; step++) {
          const ms = Date.parse(change) + (step % 2 === 0 ? 1 : -1) * step * (hourMs / 12) + (step % 5 === 0 ? 0 : step);
          const expected = plain.nextRun(new Date(ms));
          const due = nextDue(jobOf(cron, zone, ms), () => null);
          expect([cron, zone, ms, due]).toEqual([cron, zone, ms, expected && BigInt(expected.getTime()) * nsPerMs]);
        }
      }
    }
  }
});

test('an expression that never is due again has no instant, earlier or later', () => {
  const [first, second] = [Date.parse('2031-01-01T00:00Z'), Date.parse('2029-06-01T00:00Z')];
  expect(nextDue(jobOf('0 0 0 1 1 * 2030', null, first), () => null)).toBe(null);
  expect(nextDue(jobOf('0 0 0 1 1 * 2030', null, second), () => null)).toBe(BigInt(Date.parse('2030-01-01T00:00Z')) * nsPerMs);
  expect(nextDue(jobOf('0 0 0 1 1 * 2030', null, first), () => null)).toBe(null);
});

test('a zone that does not exist is found out when the job is made', () => {
  expect(() => checkSchedule({ ...definition, cron: '0 0 * * *', time_zone: 'Mars/Base' })).toThrow('cron: ');
});
