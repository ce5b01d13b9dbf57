import { expect, test } from 'vitest';
import { SharedRounds } from '../../../src/governance/erasure/shared-rounds.ts';

test('who comes while a round runs is served by the next, together; a round that fails fails its own', async () => {
  const rounds: (readonly number[])[] = [];
  let end: () => void = () => undefined;
  const shared = new SharedRounds<number>(async (items) => {
    rounds.push([...items]);
    await new Promise<void>((resolve) => (end = resolve));
    if (items.includes(13)) throw new Error('unlucky');
  });
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const first = shared.join([1], turn);
  await turn();
  const [second, third] = [shared.join([2, 13], turn), shared.join([3], turn)];
  expect(rounds).toEqual([[1]]);
  end();
  await first;
  await turn();
  expect(rounds).toEqual([[1], [2, 13, 3]]);
  end();
  await expect(second).rejects.toThrow('unlucky');
  await expect(third).rejects.toThrow('unlucky');
  const last = shared.join([4], turn);
  await turn();
  end();
  await last;
  expect(rounds).toHaveLength(3);
});
