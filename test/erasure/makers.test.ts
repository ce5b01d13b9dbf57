/**
 * Every place of the source that asks for rows to be written, and how what it writes comes to be whose its sources are. A place that
 * is not listed fails: whoever adds one says here how it carries them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const src = new URL('../../src/', import.meta.url);

const ways = {
  /** Asks whose the sources are, and says so in the row or to the store. */
  carries: /\bcarrySubject\(/,
  /** Another file of verbs makes its rows. */
  handed: /\bsubject\b/,
  /** As somebody sent them, or with a column that names their sources: what does is sealed where it is decided. */
  sent: null,
  /** Rows in which no text of another row stands. */
  own: null,
  /** Ends rows: sealed as they were, where it is decided. */
  ends: null,
} as const;

/** By file how many commands it makes, and how. */
const makers: Readonly<Record<string, readonly [number, ...(keyof typeof ways)[]]>> = {
  'doors/document/admin-commands.ts': [1, 'ends'],
  'doors/document/document-rows.ts': [1, 'sent'],
  'doors/document/write-commands.ts': [1, 'ends'],
  'doors/http/routes/patch-row.ts': [1, 'sent'],
  'doors/http/routes/schema.ts': [1, 'ends'],
  'doors/shared/ingest-stream.ts': [1, 'sent'],
  'doors/kv/command.ts': [3, 'ends'],
  'doors/kv/key-value-rows.ts': [1, 'sent'],
  'doors/kv/pub-sub.ts': [1, 'sent'],
  'doors/object/buckets.ts': [2, 'own', 'ends'],
  'doors/object/delete-objects.ts': [2, 'ends'],
  'doors/object/put-object.ts': [1, 'sent'],
  'doors/relational/copy-in.ts': [1, 'sent'],
  'doors/grpc/annals-service.ts': [2, 'sent', 'ends'],
  'doors/verbs/case-notes.ts': [1, 'own'],
  'doors/verbs/documents/store-document.ts': [3, 'handed', 'ends'],
  'doors/verbs/memory/associate.ts': [1, 'own'],
  'doors/verbs/memory/consolidate.ts': [2, 'carries', 'ends'],
  'doors/verbs/memory/justify.ts': [2, 'sent', 'ends'],
  'doors/verbs/memory/remember.ts': [2, 'carries', 'own'],
  'doors/verbs/verb-rows.ts': [1, 'sent'],
  'doors/verbs/verb-call.ts': [1, 'own'],
  'doors/workflows/run-workflow.ts': [1, 'sent'],
  'planner/continuous/jobs/identity-model-rows.ts': [1, 'own'],
  'planner/continuous/rules/alerts.ts': [1, 'sent'],
  'planner/writes/graph-write.ts': [1, 'sent'],
  'planner/writes/score-write.ts': [1, 'own'],
  'planner/writes/write.ts': [2, 'sent', 'ends'],
};

const made = /\bkind: [^'=|;{}]*(?:'remove-rows' : )?'(?:put|delete)-rows'(?: as const)?,|(?<!function )\bputting\(/g;

function* sources(): Generator<readonly [string, string]> {
  for (const name of (readdirSync(src, { recursive: true }) as string[]).sort())
    if (name.endsWith('.ts')) yield [name, readFileSync(new URL(name, src), 'utf8')];
}

test('every maker of rows says how it carries whose its sources are', () => {
  const found: Record<string, number> = {};
  for (const [name, text] of sources()) {
    // Types of commands, and what decides them, are not makers.
    if (name.startsWith('projections/')) continue;
    const count = [...text.matchAll(made)].length;
    if (count > 0) found[name] = count;
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(makers).map(([name, [count]]) => [name, count])));
  for (const [name, [, ...how]] of Object.entries(makers))
    for (const way of how)
      expect([name, way, readFileSync(new URL(name, src), 'utf8')]).toEqual([name, way, expect.stringMatching(ways[way] ?? /./)]);
});

test('every body of rows that is decided is given what it is sealed under', () => {
  const decided = [...sources()].flatMap(([name, text]) =>
    name.startsWith('projections/')
      ? [...text.matchAll(/[^;]*;[^;]*\bkind: 'rows',[^;]*/g)].map(([literal]) => [name, literal] as const)
      : [],
  );
  expect(decided.map(([name]) => name)).toEqual([
    'projections/rows/edges/edges.ts',
    'projections/rows/writes/commands.ts',
    'projections/rows/writes/commands.ts',
  ]);
  for (const [name, literal] of decided)
    expect([name, literal]).toEqual([name, expect.stringMatching(/\browSealsOf\(|\.\.\.sealedSubjects|\.bodyAt\(/)]);
});
