/**
 * Rules that are to stop the store: a million values, regular expressions that try every way, YAML and conditions that nest without end,
 * correlations in a circle; then the rows that they are judged on. `/health` is asked meanwhile, as for everything here.
 */
import { send } from '../doors/http/door-world.ts';
import type { DoorBomb } from './door-bombs.ts';
import type { Siege } from './siege.ts';

const many = (count: number, line: (i: number) => string): string => Array.from({ length: count }, (_, i) => line(i)).join('\n');

let titles = 0;

const selection = (lines: string, condition = 's'): string =>
  `title: hostile ${++titles}\nlogsource: {}\ndetection:\n  s:\n${lines}\n  condition: ${condition}\n`;

async function ask(siege: Siege, method: string, path: string, body: unknown, type = 'application/json'): Promise<string> {
  const headers = { authorization: `Bearer ${siege.token}`, 'content-type': type };
  const { status, text } = await send(siege.port, method, path, body, headers);
  return `${status} ${text.slice(0, 120)}`;
}

/** On a machine that has other work to do, an import may come to the time limit of statements first. */
const sigma = (name: string, ends: RegExp, text: () => string): DoorBomb => ({
  name: `rules: ${name}`,
  ends: new RegExp(`${ends.source}|^408 .*REL_TIMEOUT`),
  run: (siege) => ask(siege, 'POST', '/rules/sigma?object_type=Hostile&purpose=test', text(), 'application/yaml'),
});

const asking = (name: string, ends: RegExp, method: string, path: string, body: () => unknown): DoorBomb => ({
  name: `rules: ${name}`,
  ends,
  run: (siege) => ask(siege, method, path, body()),
});

const sql = (name: string, condition: () => string): DoorBomb =>
  asking(name, /^(201|400|413|422)/, 'POST', '/rules', () => ({
    name,
    object_type: 'Hostile',
    condition_sql: condition(),
    purpose: 'test',
  }));

const rejected = /^200 .*"rejected":[1-9]/;
const taken = /^200 .*"rejected":0/;
const nested = 100_000;

export const ruleBombs: readonly DoorBomb[] = [
  asking('a type for their rows', /^20/, 'POST', '/types', () => ({
    name: 'Hostile',
    properties: { id: 'string', text: 'string', n: 'integer', d: 'json' },
    primary_key: 'id',
  })),
  sigma('a million values in one', rejected, () => selection(`    text|contains:\n${many(1_000_000, (i) => `      - ${i}`)}`)),
  sigma('a million values in a hundred', /^(200|413)/, () =>
    Array.from({ length: 100 }, (_, rule) =>
      selection(`    text|contains:\n${many(10_000, (i) => `      - ${rule}x${i}`)}`),
    ).join('---\n'),
  ),
  sigma('three thousand expressions that try every way', taken, () =>
    Array.from({ length: 3_000 }, (_, rule) => selection(`    text|re: '(a+)+(a|a?)+(b${rule})?$'`)).join('---\n'),
  ),
  sigma('an expression that repeats repeats', /^200/, () => selection("    text|re: '((a{1,100}){1,100}){1,100}$'")),
  sigma('wildcards without end', /^200/, () => selection(`    text: '${'*a'.repeat(20_000)}*'`)),
  sigma('aliases that multiply', rejected, () =>
    many(
      12,
      (i) =>
        `a${i}: &a${i} [${
          i === 0
            ? 'x'
            : Array(12)
                .fill(`*a${i - 1}`)
                .join()
        }]`,
    ).concat(selection('    text: *a11')),
  ),
  sigma('an alias of itself', rejected, () => selection('    text: &a [*a]')),
  sigma('lists without end', rejected, () => selection(`    text: ${'['.repeat(nested)}${']'.repeat(nested)}`)),
  sigma('a condition without end', rejected, () => selection('    text: x', `${'('.repeat(nested)}s${')'.repeat(nested)}`)),
  sigma('a condition of a hundred thousand words', /^200/, () => selection('    text: x', `s${' or not s'.repeat(nested)}`)),
  sigma('correlations in a circle', rejected, () =>
    ['a', 'b']
      .map((name, i, both) => {
        const of = `{type: event_count, rules: [${both[1 - i]!}], group-by: [text], timespan: 1h, condition: {gte: 1}}`;
        return `title: circle ${name}\nname: ${name}\ncorrelation: ${of}\n`;
      })
      .join('---\n'),
  ),
  sql('a pattern that tries every way', () => `text LIKE '${'%a'.repeat(1_000)}%b'`),
  sql('a list of values', () => `n IN (${Array.from({ length: 3_000 }, (_, i) => i).join()})`),
  sql('a list of values without end', () => `n IN (${Array.from({ length: 200_000 }, (_, i) => i).join()})`),
  sql('parentheses', () => `${'('.repeat(8_000)}n = 1${')'.repeat(8_000)}`),
  sql('parentheses without end', () => `${'('.repeat(30_000)}n = 1${')'.repeat(30_000)}`),
  sql('a sum without end', () => `n = ${'1+'.repeat(30_000)}1`),
  asking('rows that they are judged on', /^200/, 'POST', '/ingest?object_type=Hostile&purpose=test', () =>
    many(1_000, (i) => JSON.stringify({ id: `h${i}`, text: `${'a'.repeat(8_000)}!`, n: i, d: { a: [i] } })),
  ),
  asking('a few large rows that they are judged on', /^200/, 'POST', '/ingest?object_type=Hostile&purpose=test', () =>
    many(20, (i) => JSON.stringify({ id: `l${i}`, text: `${'a'.repeat(1_000_000)}!`, n: i })),
  ),
  {
    name: 'rules: all of them are judged',
    ends: /^judged/,
    run: async (siege) => {
      await new Promise((resolve) => setTimeout(resolve, 15_000));
      return `judged ${await ask(siege, 'POST', '/query', { sql: 'SELECT COUNT(*) AS n FROM Alert AS OF CURRENT', purpose: 'test' })}`;
    },
  },
  asking('a workflow of ten thousand steps', /^201/, 'POST', '/workflows', () => ({
    name: 'hostile',
    steps: [
      {
        for_each: {
          items: Array.from({ length: 10_000 }, (_, i) => i),
          // oxlint-disable-next-line unicorn/no-thenable -- a list of steps, as the language of workflows calls it
          steps: [{ if: { condition: '1 = 2', then: [{ wait: { seconds: 1 } }] } }],
        },
      },
    ],
  })),
  asking('a run of it', /^201/, 'POST', '/workflows/runs', () => ({ name: 'hostile', purpose: 'test' })),
  asking('steps that nest without end', /^(400|413|422)/, 'POST', '/workflows', () => {
    let steps: unknown = [{ wait: { seconds: 1 } }];
    for (let i = 0; i < 1_000; i++) steps = [{ for_each: { items: [1], steps } }];
    return { name: 'nested', steps };
  }),
];
