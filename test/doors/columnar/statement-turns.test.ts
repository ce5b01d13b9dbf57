/** What reading a long statement holds of the event loop. */
import { expect, test } from 'vitest';
import { statementSteps } from '../../../src/doors/columnar/statement.ts';

test('a question of many words is read in steps of so many', () => {
  const facts = { database: 'default', user: 'tester', parameters: new Map<string, string>() };
  const steps = statementSteps(
    `SELECT id FROM Thing WHERE n IN (${Array.from({ length: 50_000 }, (_, i) => i).join(', ')})`,
    facts,
  );
  let turns = 0;
  for (let step = steps.next(); step.done !== true; step = steps.next()) turns++;
  expect(turns).toBe(Math.floor(100_008 / 2_048));
});
