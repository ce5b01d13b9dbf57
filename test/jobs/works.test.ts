/** Long work on record, and what an erasure leaves of it: the same as replaying a log that the erased texts have left. */
import { expect, test } from 'vitest';
import type { CommittedEntry, EntryBody } from '../../src/log/entries/entry.ts';
import { encodeRun } from '../../src/projections/jobs/codec.ts';
import type { RunRecord } from '../../src/projections/jobs/job.ts';
import { Jobs } from '../../src/projections/jobs/projection.ts';

const context = { branch: 'main', tenant: null, path: null, principal: 'annals', door: 'gate', purpose: null } as const;

const entryAt = (position: number, body: EntryBody): CommittedEntry => ({
  context: { ...context, correlationId: 'c', policyDigest: '' },
  body,
  leaf: position,
  position,
  positions: 1,
  time: BigInt(position),
});

function workOf(id: string, state: RunRecord['state'], sql?: string): EntryBody {
  const isOver = state === 'done';
  const who = { principal: 'ann', credential: 'none', tenant: null } as const;
  const statement =
    sql === undefined || isOver ? {} : { statement: { sql, dialect: 'wide', purpose: null, token: null, branch: 'main' } };
  const times = { started: '1', finished: isOver ? '2' : null };
  const rest = { job: null, group: null, attempt: 1, due: '1', basis: '1', alerts: 0, reason: null, missed: 0, result: null };
  const work = { kind: 'graph', about: 'T', unit: 'rows', ...who, ...times, ...statement } as const;
  return encodeRun({ ...rest, id, state, work }, (text) => text);
}

const erasureOf = (mentions: readonly number[]): EntryBody => ({ kind: 'erasure', mentions }) as unknown as EntryBody;
/** The body of an entry whose texts have left the log. */
const emptied: EntryBody = { kind: 'run', content: '' };

test.each([
  ['while the work is under way', 3],
  ['when it has ended', 4],
])('long work whose statement names an erased subject is gone with it: %s', (_, erased) => {
  const bodies = [
    workOf('a', 'running', "CALL f('alice')"),
    workOf('b', 'running'),
    workOf('b', 'done'),
    workOf('a', 'done', "CALL f('alice')"),
    workOf('c', 'running', "CALL f('bob')"),
  ];
  bodies.splice(erased, 0, erasureOf([0]));
  const live = new Jobs();
  for (const [position, body] of bodies.entries()) live.apply(entryAt(position, body));
  expect([...live.works()].map(({ run }) => [run.id, run.state])).toEqual([
    ['b', 'done'],
    ['c', 'running'],
  ]);
  const replayed = new Jobs();
  for (const [position, body] of bodies.entries()) replayed.apply(entryAt(position, position === 0 ? emptied : body));
  expect(replayed.digest()).toBe(live.digest());
});
