/** The checker flags every kind of broken history, and passes one that snapshot isolation allows. */
import { expect, test } from 'vitest';
import { anomalies, type Phenomenon } from './checker.ts';
import type { End, History, Step, Transacted } from './history.ts';

const append = (key: string, element: number): Step => ({ kind: 'append', key, element });
const list = (key: string, ...saw: number[]): Step => ({ kind: 'list', key, saw });
const write = (key: string, value: number): Step => ({ kind: 'write', key, value });
const read = (key: string, saw: number): Step => ({ kind: 'read', key, saw });
const balances = (...saw: number[]): Step => ({ kind: 'balances', saw: new Map(saw.map((balance, i) => [`a${i}`, balance])) });

/** All at once, each by a client of its own. */
function transacted(
  steps: Step[],
  more: Partial<Transacted> & { end?: End } = {},
): Omit<Transacted, 'client'> & { client?: number } {
  return { steps, end: 'committed', began: 0, ended: 10, ...more };
}

function history(transactions: ReturnType<typeof transacted>[], more: Partial<History> = {}): History {
  return { transactions: transactions.map((one, client) => ({ client, ...one })), ...more };
}

const lists = (standing: Record<string, number[]>): Partial<History> => ({ lists: new Map(Object.entries(standing)) });

const broken: [string, Phenomenon, History][] = [
  [
    'writes of two transactions interleave',
    'G0',
    history(
      [transacted([append('x', 1), append('y', 1)]), transacted([append('x', 2), append('y', 2)])],
      lists({ x: [1, 2], y: [2, 1] }),
    ),
  ],
  ['what was taken back is read', 'G1a', history([transacted([append('x', 1)], { end: 'aborted' }), transacted([list('x', 1)])])],
  [
    'a state in the middle of a transaction is read',
    'G1b',
    history([transacted([append('x', 1), append('x', 2)]), transacted([list('x', 1)]), transacted([list('x', 1, 2)])]),
  ],
  [
    'a register is read in the middle of a transaction',
    'G1b',
    history([transacted([read('r', 0), write('r', 1), write('r', 2)]), transacted([read('r', 1)])]),
  ],
  [
    'two transactions see each other',
    'G1c',
    history([transacted([append('x', 1), list('y', 2)]), transacted([append('y', 2), list('x', 1)])]),
  ],
  [
    'a transaction sees one write of another and misses the other',
    'G-single',
    history([transacted([append('x', 1), append('y', 1)]), transacted([list('x', 1), list('y')])], lists({ x: [1], y: [1] })),
  ],
  [
    'two readers see two writers in opposite orders',
    'G-nonadjacent',
    history(
      [
        transacted([append('x', 1)]),
        transacted([append('y', 2)]),
        transacted([list('x', 1), list('y')]),
        transacted([list('y', 2), list('x')]),
      ],
      lists({ x: [1], y: [2] }),
    ),
  ],
  [
    'two transactions write over the same version',
    'lost update',
    history([transacted([read('r', 0), write('r', 1)]), transacted([read('r', 0), write('r', 2)])], {
      registers: new Map([['r', 2]]),
    }),
  ],
  [
    'an acknowledged write does not stand',
    'lost update',
    history([transacted([read('r', 0), write('r', 1)])], { registers: new Map([['r', 0]]) }),
  ],
  ['an acknowledged append is gone', 'lost append', history([transacted([append('x', 1)])], lists({ x: [] }))],
  ['an append came twice', 'duplicate', history([transacted([append('x', 1)])], lists({ x: [1, 1] }))],
  [
    'two readers see different orders',
    'incompatible order',
    history([
      transacted([append('x', 1)]),
      transacted([append('x', 2)]),
      transacted([list('x', 1, 2)]),
      transacted([list('x', 2, 1)]),
    ]),
  ],
  [
    'a transaction does not read what it wrote',
    'own write unseen',
    history([transacted([append('x', 1), list('x')])], lists({ x: [1] })),
  ],
  [
    'a register does not show what the transaction wrote',
    'own write unseen',
    history([transacted([read('r', 0), write('r', 1), read('r', 0)])]),
  ],
  [
    'a second read of a transaction differs',
    'unrepeatable read',
    history([transacted([append('x', 1)]), transacted([list('x'), list('x', 1)])], lists({ x: [1] })),
  ],
  ['something is read that nobody wrote', 'never written', history([transacted([list('x', 7)])])],
  [
    'a transaction that begins later misses an acknowledged write',
    'stale read',
    history([transacted([append('x', 1)], { ended: 1 }), transacted([list('x')], { began: 2 })], lists({ x: [1] })),
  ],
  ['a transfer is seen by half', 'broken sum', history([transacted([balances(90, 100)])], { total: 200 })],
];

test.each(broken)('%s: %s', (_, phenomenon, told) => {
  expect(anomalies(told).map(({ phenomenon: found }) => found)).toContain(phenomenon);
});

test('write skew, unknown ends and waits are no anomaly of snapshot isolation', () => {
  const allowed = history(
    [
      transacted([append('x', 1), list('x', 1), list('y')]),
      transacted([append('y', 2), list('x')]),
      transacted([append('x', 3)], { end: 'unknown' }),
      transacted([append('x', 4)], { end: 'unknown' }),
      transacted([read('r', 0), write('r', 5)], { end: 'unknown' }),
      transacted([read('r', 0), write('r', 6), read('r', 6)]),
      transacted([list('x', 1, 4), read('r', 6), balances(120, 80)], { began: 11, ended: 12 }),
    ],
    { ...lists({ x: [1, 4], y: [2] }), registers: new Map([['r', 6]]), total: 200 },
  );
  expect(anomalies(allowed)).toEqual([]);
});
