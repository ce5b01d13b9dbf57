/** A bounded share of the leak matrix, under policies, masks, agreements and tenants; `npm run leaks` asks all of it. */
import { expect, test } from 'vitest';
import { differences, together } from './differences.ts';
import { Matrix, named } from './matrix.ts';
import { tell } from '../runner/tell.ts';
import { inTurn } from '../runner/turn.ts';

test('under policies, masks, agreements and tenants they do too', async () => {
  const matrix = new Matrix();
  const adversaries = [
    'a path of another tenant',
    'another tenant that names the victim',
    'a child',
    'no header',
    'two headers',
    'a reader of masked columns',
    'a partner',
    'a former partner on a visit',
    'a suspended tenant',
    'a tenant that was made anew',
    'the admin secret',
  ];
  await matrix.compare('governed', together(differences)[0]!, named(...inTurn(adversaries, 3)));
  expect(matrix.reds).toEqual([]);
  expect(matrix.figures.cells).toBeGreaterThan(1_000);
  tell(`${matrix.figures.cells} cells, every third adversary and a sixteenth of the shapes for each, in turn (npm run leaks)`);
});
